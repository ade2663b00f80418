// Runs the SQL script that the first argument names, then the queries on stdin, a JSON list; prints
// the rows of each.
import { readFileSync } from "node:fs";
import { DuckDBInstance } from "@duckdb/node-api";

const connection = await (await DuckDBInstance.create(":memory:")).connect();
await connection.run(readFileSync(process.argv[2], "utf8"));
const answers = [];
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  answers.push((await connection.runAndReadAll(query)).getRowObjectsJson());
}
console.log(JSON.stringify(answers));
