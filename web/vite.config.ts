// Builds the page as one file: web/built/report.html, with its script and style inside, and a policy
// that lets the browser run that script and nothing else. cudabpf puts a trace in at the marks.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

// What stands between tags is hashed as it is, so it must not end the tag early.
const script = (text: string) => text.trim().replaceAll("</script", "<\\/script");

function onePage(): Plugin {
  return {
    name: "one-page",
    enforce: "post",
    generateBundle(_, bundle) {
      let js = "", css = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") js += script(part.code);
        else if (name.endsWith(".css")) css += String(part.source).trim();
        delete bundle[name];
      }
      const policy = `default-src 'none'; script-src ${sha256(js)}; style-src ${sha256(css)}; ` +
        "img-src data:; base-uri 'none'; form-action 'none'";
      const page = readFileSync("page.html", "utf8")
        .replace("@POLICY@", () => policy)
        .replace("@STYLE@", () => css)
        .replace("@SCRIPT@", () => js);
      this.emitFile({ type: "asset", fileName: "report.html", source: page });
    },
  };
}

export default defineConfig({
  plugins: [onePage()],
  build: {
    outDir: "built",
    target: "es2022",
    lib: { entry: "src/main.ts", formats: ["iife"], name: "cudabpfReport", fileName: "report" },
    modulePreload: false,
    reportCompressedSize: false,
  },
});
