// Colours code beside the page, so that nothing waits for it. A language's grammar is loaded when it is first met.
import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore, type LanguageInput } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import type { Language } from "./languages";
import { inks, type Ink, type Painted, type PaintJob, type PaintResult } from "./paint-kinds";

const grammars: Record<Language, LanguageInput> = {
  bash: () => import("shiki/langs/bash.mjs"),
  c: () => import("shiki/langs/c.mjs"),
  clojure: () => import("shiki/langs/clojure.mjs"),
  cpp: () => import("shiki/langs/cpp.mjs"),
  csharp: () => import("shiki/langs/csharp.mjs"),
  css: () => import("shiki/langs/css.mjs"),
  dart: () => import("shiki/langs/dart.mjs"),
  diff: () => import("shiki/langs/diff.mjs"),
  docker: () => import("shiki/langs/docker.mjs"),
  elixir: () => import("shiki/langs/elixir.mjs"),
  erlang: () => import("shiki/langs/erlang.mjs"),
  go: () => import("shiki/langs/go.mjs"),
  graphql: () => import("shiki/langs/graphql.mjs"),
  haskell: () => import("shiki/langs/haskell.mjs"),
  hcl: () => import("shiki/langs/hcl.mjs"),
  html: () => import("shiki/langs/html.mjs"),
  ini: () => import("shiki/langs/ini.mjs"),
  java: () => import("shiki/langs/java.mjs"),
  javascript: () => import("shiki/langs/javascript.mjs"),
  json: () => import("shiki/langs/json.mjs"),
  jsx: () => import("shiki/langs/jsx.mjs"),
  julia: () => import("shiki/langs/julia.mjs"),
  kotlin: () => import("shiki/langs/kotlin.mjs"),
  latex: () => import("shiki/langs/latex.mjs"),
  lua: () => import("shiki/langs/lua.mjs"),
  make: () => import("shiki/langs/make.mjs"),
  markdown: () => import("shiki/langs/markdown.mjs"),
  nginx: () => import("shiki/langs/nginx.mjs"),
  nix: () => import("shiki/langs/nix.mjs"),
  "objective-c": () => import("shiki/langs/objective-c.mjs"),
  ocaml: () => import("shiki/langs/ocaml.mjs"),
  perl: () => import("shiki/langs/perl.mjs"),
  php: () => import("shiki/langs/php.mjs"),
  powershell: () => import("shiki/langs/powershell.mjs"),
  proto: () => import("shiki/langs/proto.mjs"),
  python: () => import("shiki/langs/python.mjs"),
  r: () => import("shiki/langs/r.mjs"),
  ruby: () => import("shiki/langs/ruby.mjs"),
  rust: () => import("shiki/langs/rust.mjs"),
  scala: () => import("shiki/langs/scala.mjs"),
  scss: () => import("shiki/langs/scss.mjs"),
  sql: () => import("shiki/langs/sql.mjs"),
  svelte: () => import("shiki/langs/svelte.mjs"),
  swift: () => import("shiki/langs/swift.mjs"),
  toml: () => import("shiki/langs/toml.mjs"),
  tsx: () => import("shiki/langs/tsx.mjs"),
  typescript: () => import("shiki/langs/typescript.mjs"),
  vue: () => import("shiki/langs/vue.mjs"),
  xml: () => import("shiki/langs/xml.mjs"),
  yaml: () => import("shiki/langs/yaml.mjs"),
  zig: () => import("shiki/langs/zig.mjs"),
};

/** Lines beyond this length stay plain, in characters; work on a line ends after so many milliseconds, which the first of a
 * language needs to read its grammar. */
const longestLine = 2_000;
const longestWork = 2_000;

const theme = createCssVariablesTheme({ name: "inks", variablePrefix: "--", fontStyle: false });
let painter: Promise<HighlighterCore> | null = null;

async function paint({ code, language }: PaintJob): Promise<Painted> {
  painter ??= createHighlighterCore({ themes: [theme], langs: [], engine: createJavaScriptRegexEngine({ forgiving: true }) });
  const highlighter = await painter;
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(grammars[language]);
  const { tokens } = highlighter.codeToTokens(code, { lang: language, theme: "inks", tokenizeMaxLineLength: longestLine, tokenizeTimeLimit: longestWork });
  return tokens.map((line) => {
    const runs: [Ink, string][] = [];
    for (const token of line) {
      const ink = inkOf(token.color);
      const last = runs.at(-1);
      // Blanks have no colour: they join what stands before them.
      if (last !== undefined && (last[0] === ink || token.content.trim() === "")) last[1] += token.content;
      else runs.push([ink, token.content]);
    }
    return runs;
  });
}

function inkOf(color: string | undefined): Ink {
  const name = /--token-([a-z-]+)/.exec(color ?? "")?.[1];
  const at = inks.findIndex((ink) => ink === name);
  return at < 0 ? "plain" : inks[at]!;
}

self.onmessage = ({ data }: MessageEvent<PaintJob>) => {
  const answer = (lines: Painted | null) => self.postMessage({ id: data.id, lines } satisfies PaintResult);
  paint(data).then(answer, () => answer(null));
};
