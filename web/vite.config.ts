import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import { parse } from "@formatjs/icu-messageformat-parser";
import react from "@vitejs/plugin-react";
import { build, type Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** Adds .br and .gz files next to the assets. The service sends them as they are; it compresses nothing at run time. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    generateBundle: {
      order: "post",
      handler(_, bundle) {
        for (const [name, file] of Object.entries(bundle)) {
          if (!/^assets\/.*\.(js|css|svg)$/.test(name)) continue;
          const content = Buffer.from(file.type === "chunk" ? file.code : file.source);
          this.emitFile({
            type: "asset",
            fileName: `${name}.br`,
            source: brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
          });
          this.emitFile({ type: "asset", fileName: `${name}.gz`, source: gzipSync(content, { level: 9 }) });
        }
      },
    },
  };
}

/** The libraries of artifacts, as classic scripts and style sheets. The app loads each as a blob when an artifact uses it. */
const libraries = {
  chart: "node_modules/chart.js/dist/chart.umd.min.js",
  d3: "node_modules/d3/dist/d3.min.js",
  mermaid: "node_modules/mermaid/dist/mermaid.min.js",
  katex: "node_modules/katex/dist/katex.min.js",
  subset: "src/sandbox/subset.css",
} as const;

/** Provides the addresses of the libraries of artifacts as the module virtual:artifact-runtime. */
function artifactRuntime(): Plugin {
  const id = "\0virtual:artifact-runtime";
  return {
    name: "artifact-runtime",
    resolveId: (source) => (source === "virtual:artifact-runtime" ? id : null),
    async load(source) {
      if (source !== id) return null;
      if (this.environment.mode === "dev") return "export default {};"; // artifacts run in a build only
      const file = (name: string, content: string) =>
        `import.meta.ROLLUP_FILE_URL_${this.emitFile({ type: "asset", name, source: content })}`;
      const entries = Object.entries(libraries).map(
        ([name, path]) =>
          `${name}: ${file(path.replace(/^.*\//, ""), readFileSync(join(import.meta.dirname, path), "utf8"))}`,
      );
      entries.push(
        `react: ${file("react.js", await reactLibrary())}`,
        `katexStyles: ${file("katex.css", katexStyles())}`,
      );
      return `export default { ${entries.join(", ")} };`;
    },
  };
}

/** React has no classic script of its own. */
async function reactLibrary(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: "error",
    define: { "process.env.NODE_ENV": '"production"' },
    build: {
      write: false,
      target: "es2023",
      lib: { entry: join(import.meta.dirname, "src/sandbox/react.ts"), formats: ["iife"], name: "artifactReact" },
    },
  });
  const output = (Array.isArray(built) ? built[0] : built) as { output: { code: string }[] };
  return output.output[0]!.code;
}

/** The styles of KaTeX with their fonts as data, because the frame loads nothing. */
function katexStyles(): string {
  const path = join(import.meta.dirname, "node_modules/katex/dist/katex.min.css");
  const font = (name: string) => readFileSync(join(dirname(path), "fonts", name)).toString("base64");
  return readFileSync(path, "utf8").replace(
    /src:url\(fonts\/([\w-]+\.woff2)\)[^;}]*/g,
    (_, name: string) => `src:url(data:font/woff2;base64,${font(name)}) format("woff2")`,
  );
}

/** Parses the messages with values when the app is built, so that the app contains no parser. */
function parsedMessages(): Plugin {
  return {
    name: "parsed-messages",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/messages\/\w+\/[\w-]+\.json$/ },
      handler: (source) =>
        JSON.stringify(JSON.parse(source), (_, value: unknown) =>
          typeof value === "string" && value.includes("{") ? parse(value) : value,
        ),
    },
  };
}

const service = process.env["TURNSTONE_URL"] ?? "http://127.0.0.1:8080";

// Modules that are loaded together, or that several parts of the app have in common. Each would be a file of its own, most of
// them tiny.
const transcriptParts =
  /\/src\/(?:parts\/(?:announcements|copy-button|disclosure|elapsed|export-text|links|plain|preview|sources)|api\/(?:trusted-address|usage)|features\/(?:conversation\/siblings|prompts\/index|research\/queries))\.tsx?$/;
const organizing =
  /\/src\/(?:features\/sidebar\/(?:deletion-dialogs|deletion-requests|export|placement|placement-items|rename)|api\/batch)\.tsx?$/;

export default defineConfig({
  plugins: [parsedMessages(), artifactRuntime(), react(), tailwindcss(), compressed()],
  resolve: { alias: { "@formatjs/icu-messageformat-parser": "@formatjs/icu-messageformat-parser/no-parser.js" } },
  build: {
    target: "es2023",
    assetsInlineLimit: 0, // no data: URLs: the content security policy allows fonts, styles and scripts of this origin
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    // One file for everything that every page needs. Otherwise a first visit would load two dozen files, most of them tiny.
    // Not the dependencies of a module that it does not use: a feature's public file also exports code that is loaded later.
    rolldownOptions: {
      input: { index: "index.html", sandbox: "src/sandbox/sandbox.ts" },
      preserveEntrySignatures: "allow-extension",
      output: {
        codeSplitting: {
          groups: [
            { name: "app", tags: ["$initial"], test: /^(?!.*\/src\/sandbox\/)/, includeDependenciesRecursively: false },
            { name: "parts", test: transcriptParts, includeDependenciesRecursively: false },
            { name: "organizing", test: organizing, includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
  worker: { format: "es" },
  html: { cspNonce: "__nonce__" },
  server: {
    port: 5173,
    proxy: Object.fromEntries(
      [
        "/auth",
        "/account",
        "/chat",
        "/conversations",
        "/events",
        "/projects",
        "/prompts",
        "/files",
        "/search",
        "/shares",
        "/shared",
        "/s/",
        "/usage",
        "/ready",
        "/version",
      ].map((path) => [path, { target: service, changeOrigin: true, headers: { origin: service } }]),
    ),
  },
  test: {
    include: ["src/**/*.test.ts", "src/**/*.test.tsx"],
    environment: "node",
    isolate: false,
    testTimeout: 60_000,
  },
});
