// The languages that code is written in: what people call them, how they are shown, and how their files end.

interface Known {
  name: string;
  ending: string;
  also?: readonly string[];
}

const known = {
  bash: { name: "Bash", ending: "sh", also: ["sh", "shell", "zsh", "console", "shellscript"] },
  c: { name: "C", ending: "c", also: ["h"] },
  clojure: { name: "Clojure", ending: "clj", also: ["clj"] },
  cpp: { name: "C++", ending: "cpp", also: ["c++", "cc", "hpp", "cxx"] },
  csharp: { name: "C#", ending: "cs", also: ["cs", "c#"] },
  css: { name: "CSS", ending: "css" },
  dart: { name: "Dart", ending: "dart" },
  diff: { name: "Diff", ending: "diff", also: ["patch"] },
  docker: { name: "Dockerfile", ending: "Dockerfile", also: ["dockerfile"] },
  elixir: { name: "Elixir", ending: "ex", also: ["ex", "exs"] },
  erlang: { name: "Erlang", ending: "erl", also: ["erl"] },
  go: { name: "Go", ending: "go", also: ["golang"] },
  graphql: { name: "GraphQL", ending: "graphql", also: ["gql"] },
  haskell: { name: "Haskell", ending: "hs", also: ["hs"] },
  hcl: { name: "HCL", ending: "tf", also: ["terraform", "tf"] },
  html: { name: "HTML", ending: "html", also: ["htm"] },
  ini: { name: "INI", ending: "ini", also: ["conf", "properties"] },
  java: { name: "Java", ending: "java" },
  javascript: { name: "JavaScript", ending: "js", also: ["js", "mjs", "cjs", "node"] },
  json: { name: "JSON", ending: "json", also: ["jsonc", "json5", "jsonl"] },
  jsx: { name: "JSX", ending: "jsx" },
  julia: { name: "Julia", ending: "jl", also: ["jl"] },
  kotlin: { name: "Kotlin", ending: "kt", also: ["kt", "kts"] },
  latex: { name: "LaTeX", ending: "tex", also: ["tex"] },
  lua: { name: "Lua", ending: "lua" },
  make: { name: "Makefile", ending: "mk", also: ["makefile"] },
  markdown: { name: "Markdown", ending: "md", also: ["md"] },
  nginx: { name: "Nginx", ending: "conf" },
  nix: { name: "Nix", ending: "nix" },
  "objective-c": { name: "Objective-C", ending: "m", also: ["objc", "objectivec"] },
  ocaml: { name: "OCaml", ending: "ml", also: ["ml"] },
  perl: { name: "Perl", ending: "pl", also: ["pl"] },
  php: { name: "PHP", ending: "php" },
  powershell: { name: "PowerShell", ending: "ps1", also: ["ps1", "pwsh"] },
  proto: { name: "Protocol Buffers", ending: "proto", also: ["protobuf"] },
  python: { name: "Python", ending: "py", also: ["py", "python3"] },
  r: { name: "R", ending: "r" },
  ruby: { name: "Ruby", ending: "rb", also: ["rb"] },
  rust: { name: "Rust", ending: "rs", also: ["rs"] },
  scala: { name: "Scala", ending: "scala" },
  scss: { name: "SCSS", ending: "scss", also: ["sass"] },
  sql: { name: "SQL", ending: "sql", also: ["postgres", "postgresql", "mysql", "plsql", "sqlite"] },
  svelte: { name: "Svelte", ending: "svelte" },
  swift: { name: "Swift", ending: "swift" },
  toml: { name: "TOML", ending: "toml" },
  tsx: { name: "TSX", ending: "tsx" },
  typescript: { name: "TypeScript", ending: "ts", also: ["ts", "mts", "cts"] },
  vue: { name: "Vue", ending: "vue" },
  xml: { name: "XML", ending: "xml", also: ["svg", "xhtml"] },
  yaml: { name: "YAML", ending: "yaml", also: ["yml"] },
  zig: { name: "Zig", ending: "zig" },
} as const satisfies Record<string, Known>;

/** A language whose code can be coloured. */
export type Language = keyof typeof known;

const byName = new Map<string, Language>(
  (Object.entries(known) as [Language, Known][]).flatMap(([id, { also = [] }]) => [id, ...also].map((name): [string, Language] => [name, id])),
);

/** The language that a fence names, in whatever way; null for one that is not known. */
export function languageOf(word: string): Language | null {
  return byName.get(word.toLowerCase()) ?? null;
}

/** What a language is called; unknown ones as they were written. */
export function languageName(word: string): string {
  const language = languageOf(word);
  return language === null ? word.slice(0, 40) : known[language].name;
}

/** A name for a file of such code. */
export function fileName(word: string): string {
  const language = languageOf(word);
  if (language === "docker") return "Dockerfile";
  return `code.${language === null ? "txt" : known[language].ending}`;
}
