// Runs the SQL script that the first argument names, then the queries on stdin, a JSON list; prints
// the rows of each. chDB is ClickHouse in this process.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Session } = createRequire(import.meta.url)("chdb");
const session = new Session();
for (const statement of readFileSync(process.argv[2], "utf8").split(/;\n/)) {
  if (statement.trim()) session.query(statement, "JSONEachRow");
}
const answers = JSON.parse(readFileSync(0, "utf8")).map((query) =>
  session.query(query, "JSONEachRow").split("\n").filter(Boolean).map((row) => JSON.parse(row)),
);
console.log(JSON.stringify(answers));
session.close();
