import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import { parse } from "@formatjs/icu-messageformat-parser";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
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

/** Parses the messages with values when the app is built, so that the app contains no parser. */
function parsedMessages(): Plugin {
  return {
    name: "parsed-messages",
    enforce: "pre",
    transform: {
      filter: { id: /\/src\/messages\/\w+\/\w+\.json$/ },
      handler: (source) =>
        JSON.stringify(JSON.parse(source), (_, value: unknown) =>
          typeof value === "string" && value.includes("{") ? parse(value) : value,
        ),
    },
  };
}

const service = process.env["TURNSTONE_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [parsedMessages(), react(), tailwindcss(), compressed()],
  resolve: { alias: { "@formatjs/icu-messageformat-parser": "@formatjs/icu-messageformat-parser/no-parser.js" } },
  build: {
    target: "es2023",
    assetsInlineLimit: 0, // no data: URLs: the content security policy allows fonts, styles and scripts of this origin
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    // One file for everything that every page needs. Otherwise a first visit would load two dozen files, most of them tiny.
    // Not the dependencies of a module that it does not use: a feature's public file also exports code that is loaded later.
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: "app", tags: ["$initial"], includeDependenciesRecursively: false }] },
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
