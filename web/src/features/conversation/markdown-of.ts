// A message as Markdown: its text and code, without reasoning and tool calls.
import type { Part } from "../../generated/events";
import { fenced } from "../../parts/fences";

export function markdownOf(parts: readonly Pick<Part, "type" | "text" | "code" | "language">[]): string {
  return parts
    .flatMap((part) =>
      part.type === "text" && part.text
        ? [part.text.trim()]
        : part.type === "code"
          ? [fenced(part.code ?? "", part.language)]
          : [],
    )
    .join("\n\n");
}

/** The text of a user message. */
export function textOf(message: { parts: readonly Pick<Part, "type" | "text">[] } | null): string {
  return (
    message?.parts
      .filter((part) => part.type === "text")
      .map((part) => part.text ?? "")
      .join("\n\n") ?? ""
  );
}
