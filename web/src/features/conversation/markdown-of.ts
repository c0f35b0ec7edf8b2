// A message as Markdown: its text and code, without reasoning and tool calls.
import type { Part } from "../../generated/events";

export function markdownOf(parts: readonly Part[]): string {
  return parts
    .flatMap((part) =>
      part.type === "text" && part.text ? [part.text.trim()] : part.type === "code" ? [fenced(part)] : [],
    )
    .join("\n\n");
}

function fenced({ code = "", language = "" }: Part): string {
  const longest = Math.max(2, ...[...code.matchAll(/^`{3,}/gm)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${code}\n${fence}`;
}
