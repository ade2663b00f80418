// Builds each page as one file, with its script and style inside, and a policy that lets the browser
// run that script and nothing else: web/built/report.html, and by --mode list web/built/list.html.
// cudabpf puts a trace into the first at its marks.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const PAGES = {
  report: { frame: "page.html", entry: "src/main.ts", more: "" },
  list: { frame: "list.html", entry: "src/list/main.ts", more: "connect-src 'self'; " },
};

const sha256 = (text: string) => `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;

// What stands between tags is hashed as it is, so it must not end the tag early.
const script = (text: string) => text.trim().replaceAll("</script", "<\\/script");

function onePage(name: keyof typeof PAGES): Plugin {
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
        `${PAGES[name].more}img-src data:; base-uri 'none'; form-action 'none'`;
      const page = readFileSync(PAGES[name].frame, "utf8")
        .replace("@POLICY@", () => policy)
        .replace("@STYLE@", () => css)
        .replace("@SCRIPT@", () => js);
      this.emitFile({ type: "asset", fileName: `${name}.html`, source: page });
    },
  };
}

export default defineConfig(({ mode }) => {
  const name = mode === "list" ? "list" : "report";
  return {
    mode: "production",
    plugins: [onePage(name)],
    build: {
      outDir: "built",
      emptyOutDir: false,
      target: "es2022",
      lib: { entry: PAGES[name].entry, formats: ["iife"], name: "cudabpfReport", fileName: name },
      modulePreload: false,
      reportCompressedSize: false,
    },
  };
});
