// The worker that highlights code, so that the page is never blocked. A language's grammar is loaded at its first use.
import { createCssVariablesTheme, createHighlighterCore, type HighlighterCore, type LanguageInput } from "shiki/core";
import { createJavaScriptRegexEngine } from "shiki/engine/javascript";
import type { Language } from "./languages";
import {
  tokenKinds,
  type TokenKind,
  type HighlightedLines,
  type HighlightJob,
  type HighlightResult,
} from "./highlight-messages";

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

/**
 * Lines of more than maxLineLength characters stay plain. Highlighting of a line ends after maxLineTime milliseconds;
 * the first line of a language needs that long, because its grammar is read then.
 */
const maxLineLength = 2_000;
const maxLineTime = 2_000;

const theme = createCssVariablesTheme({ name: "inks", variablePrefix: "--", fontStyle: false });
let highlighterPromise: Promise<HighlighterCore> | null = null;

async function highlight({ code, language }: HighlightJob): Promise<HighlightedLines> {
  highlighterPromise ??= createHighlighterCore({
    themes: [theme],
    langs: [],
    engine: createJavaScriptRegexEngine({ forgiving: true }),
  });
  const highlighter = await highlighterPromise;
  if (!highlighter.getLoadedLanguages().includes(language)) await highlighter.loadLanguage(grammars[language]);
  const { tokens } = highlighter.codeToTokens(code, {
    lang: language,
    theme: "inks",
    tokenizeMaxLineLength: maxLineLength,
    tokenizeTimeLimit: maxLineTime,
  });
  return tokens.map((line) => {
    const runs: [TokenKind, string][] = [];
    for (const token of line) {
      const kind = tokenKindOf(token.color);
      const last = runs.at(-1);
      // Whitespace has no colour, so it joins the piece before it.
      if (last !== undefined && (last[0] === kind || token.content.trim() === "")) last[1] += token.content;
      else runs.push([kind, token.content]);
    }
    return runs;
  });
}

function tokenKindOf(color: string | undefined): TokenKind {
  const name = /--token-([a-z-]+)/.exec(color ?? "")?.[1];
  const at = tokenKinds.findIndex((kind) => kind === name);
  return at < 0 ? "plain" : tokenKinds[at]!;
}

self.onmessage = ({ data }: MessageEvent<HighlightJob>) => {
  const reply = (lines: HighlightedLines | null) => self.postMessage({ id: data.id, lines } satisfies HighlightResult);
  highlight(data).then(reply, () => reply(null));
};
