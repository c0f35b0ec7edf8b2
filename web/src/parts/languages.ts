// The languages of code blocks: their aliases, display names and file extensions.

interface LanguageInfo {
  name: string;
  extension: string;
  aliases?: readonly string[];
}

const languages = {
  bash: { name: "Bash", extension: "sh", aliases: ["sh", "shell", "zsh", "console", "shellscript"] },
  c: { name: "C", extension: "c", aliases: ["h"] },
  clojure: { name: "Clojure", extension: "clj", aliases: ["clj"] },
  cpp: { name: "C++", extension: "cpp", aliases: ["c++", "cc", "hpp", "cxx"] },
  csharp: { name: "C#", extension: "cs", aliases: ["cs", "c#"] },
  css: { name: "CSS", extension: "css" },
  dart: { name: "Dart", extension: "dart" },
  diff: { name: "Diff", extension: "diff", aliases: ["patch"] },
  docker: { name: "Dockerfile", extension: "Dockerfile", aliases: ["dockerfile"] },
  elixir: { name: "Elixir", extension: "ex", aliases: ["ex", "exs"] },
  erlang: { name: "Erlang", extension: "erl", aliases: ["erl"] },
  go: { name: "Go", extension: "go", aliases: ["golang"] },
  graphql: { name: "GraphQL", extension: "graphql", aliases: ["gql"] },
  haskell: { name: "Haskell", extension: "hs", aliases: ["hs"] },
  hcl: { name: "HCL", extension: "tf", aliases: ["terraform", "tf"] },
  html: { name: "HTML", extension: "html", aliases: ["htm"] },
  ini: { name: "INI", extension: "ini", aliases: ["conf", "properties"] },
  java: { name: "Java", extension: "java" },
  javascript: { name: "JavaScript", extension: "js", aliases: ["js", "mjs", "cjs", "node"] },
  json: { name: "JSON", extension: "json", aliases: ["jsonc", "json5", "jsonl"] },
  jsx: { name: "JSX", extension: "jsx" },
  julia: { name: "Julia", extension: "jl", aliases: ["jl"] },
  kotlin: { name: "Kotlin", extension: "kt", aliases: ["kt", "kts"] },
  latex: { name: "LaTeX", extension: "tex", aliases: ["tex"] },
  lua: { name: "Lua", extension: "lua" },
  make: { name: "Makefile", extension: "mk", aliases: ["makefile"] },
  markdown: { name: "Markdown", extension: "md", aliases: ["md"] },
  nginx: { name: "Nginx", extension: "conf" },
  nix: { name: "Nix", extension: "nix" },
  "objective-c": { name: "Objective-C", extension: "m", aliases: ["objc", "objectivec"] },
  ocaml: { name: "OCaml", extension: "ml", aliases: ["ml"] },
  perl: { name: "Perl", extension: "pl", aliases: ["pl"] },
  php: { name: "PHP", extension: "php" },
  powershell: { name: "PowerShell", extension: "ps1", aliases: ["ps1", "pwsh"] },
  proto: { name: "Protocol Buffers", extension: "proto", aliases: ["protobuf"] },
  python: { name: "Python", extension: "py", aliases: ["py", "python3"] },
  r: { name: "R", extension: "r" },
  ruby: { name: "Ruby", extension: "rb", aliases: ["rb"] },
  rust: { name: "Rust", extension: "rs", aliases: ["rs"] },
  scala: { name: "Scala", extension: "scala" },
  scss: { name: "SCSS", extension: "scss", aliases: ["sass"] },
  sql: { name: "SQL", extension: "sql", aliases: ["postgres", "postgresql", "mysql", "plsql", "sqlite"] },
  svelte: { name: "Svelte", extension: "svelte" },
  swift: { name: "Swift", extension: "swift" },
  toml: { name: "TOML", extension: "toml" },
  tsx: { name: "TSX", extension: "tsx" },
  typescript: { name: "TypeScript", extension: "ts", aliases: ["ts", "mts", "cts"] },
  vue: { name: "Vue", extension: "vue" },
  xml: { name: "XML", extension: "xml", aliases: ["svg", "xhtml"] },
  yaml: { name: "YAML", extension: "yaml", aliases: ["yml"] },
  zig: { name: "Zig", extension: "zig" },
} as const satisfies Record<string, LanguageInfo>;

/** A language with syntax highlighting. */
export type Language = keyof typeof languages;

const byName = new Map<string, Language>(
  (Object.entries(languages) as [Language, LanguageInfo][]).flatMap(([id, { aliases = [] }]) =>
    [id, ...aliases].map((name): [string, Language] => [name, id]),
  ),
);

/** Returns the language that a fence names by its identifier or an alias, in any letter case; null: unknown. */
export function languageOf(word: string): Language | null {
  return byName.get(word.toLowerCase()) ?? null;
}

/** Returns the display name of a language; an unknown one as written, at most 40 characters of it. */
export function languageName(word: string): string {
  const language = languageOf(word);
  return language === null ? word.slice(0, 40) : languages[language].name;
}

/** Returns a file name for code in this language. */
export function fileName(word: string): string {
  const language = languageOf(word);
  if (language === "docker") return "Dockerfile";
  return `code.${language === null ? "txt" : languages[language].extension}`;
}
