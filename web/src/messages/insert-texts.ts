// Formats the messages that need no rules of a language. The start of Intl takes tens of milliseconds, which the first page does
// not need.
import { isArgumentElement, isLiteralElement, type MessageFormatElement } from "@formatjs/icu-messageformat-parser";
import type { Values } from "./bidi-isolation";

/** Returns a parsed message with its values, all of which are texts; null: it has others, for example numbers or plurals. */
export function insertTexts(message: readonly MessageFormatElement[], values: Values = {}): string | null {
  let text = "";
  for (const part of message) {
    const value = isLiteralElement(part) ? part.value : isArgumentElement(part) ? values[part.value] : undefined;
    if (typeof value !== "string") return null;
    text += value;
  }
  return text;
}
