// Quotes of a message for the composer.
import { fenced } from "../../parts/fences";
import { ofPage } from "./copy-message";

/** Returns the selected text as Markdown if all of it is in a message; "": none. */
export function selectedIn(message: string): string {
  const selection = getSelection();
  if (selection === null || selection.rangeCount === 0 || selection.isCollapsed) return "";
  const range = selection.getRangeAt(0);
  const row = document.querySelector(`[data-row="${CSS.escape(message)}"]`);
  const around = range.commonAncestorContainer;
  if (row?.contains(around) !== true) return "";
  const element = around instanceof Element ? around : around.parentElement!;
  const code = element.closest("pre, [data-kind='question'] p"); // its lines are displayed as they are written
  if (code?.matches("pre") === true) {
    const lines = selection.toString().replace(/^\n+|\s+$/g, "");
    return lines.includes("\n") ? fenced(lines, "") : lines.trim();
  }
  const text = code === null ? markdownOf(range.cloneContents()) : selection.toString();
  return text
    .replace(/\s*\n[ \t]*\n\s*/g, "\n\n")
    .replaceAll(codeLine, "\n")
    .trim();
}

/** The end of a line of code, which is kept as it is. */
const codeLine = "\uE000";

/** Returns displayed content as Markdown, with too many empty lines between its blocks. */
function markdownOf(node: Node): string {
  if (node instanceof Text) return node.data.replace(/\s+/g, " ");
  const inside = () => [...node.childNodes].map(markdownOf).join("");
  if (!(node instanceof Element)) return inside();
  const tex = node.matches(".katex-display, .katex") ? node.querySelector("annotation")?.textContent : undefined;
  if (tex != null) return node.matches(".katex-display") ? block(`$$${tex}$$`) : `$${tex}$`;
  if (node.matches("[data-task]")) return node.childElementCount > 0 ? "[x] " : "[ ] ";
  if (node.matches(ofPage)) return "";
  switch (node.localName) {
    case "br":
      return "\n";
    case "strong":
      return `**${inside()}**`;
    case "em":
      return `*${inside()}*`;
    case "del":
      return `~~${inside()}~~`;
    case "code":
      return `\`${node.textContent}\``;
    case "pre":
      return block(fenced(node.querySelector(".code-lines")?.textContent ?? "", "").replaceAll("\n", codeLine));
    case "a": {
      const address = node.getAttribute("href") ?? "";
      return node.hasAttribute("data-bare") || !/^[a-z]+:/.test(address) ? inside() : `[${inside()}](${address})`;
    }
    case "td":
    case "th":
      return `${inside()} | `;
    case "tr":
      return `| ${inside().trim()}\n${node.querySelector("th") === null ? "" : `|${"---|".repeat(node.childElementCount)}\n`}`;
    case "li": {
      const list = node.parentElement;
      const at = [...(list?.children ?? [])].indexOf(node);
      const mark = list?.localName === "ol" ? `${Number(list.getAttribute("start") ?? 1) + at}. ` : "- ";
      const text = inside()
        .trim()
        .replace(/\n[ \t]*(?=\n)/g, "");
      return `\n${mark}${text.replaceAll("\n", `\n${" ".repeat(mark.length)}`)}`;
    }
    case "blockquote":
      return block(quoteOf(inside()).trim());
    case "p":
    case "h3":
    case "h4":
    case "h5":
    case "h6":
    case "ul":
    case "ol":
    case "div":
    case "table":
    case "summary":
      return block(inside());
    default:
      return inside();
  }
}

const block = (text: string): string => `\n\n${text}\n\n`;

/** Returns a text as a quote in Markdown, with an empty line after it to write in. */
export const quoteOf = (text: string): string =>
  `${text
    .trim()
    .split("\n")
    .map((line) => (line === "" ? ">" : `> ${line}`))
    .join("\n")}\n\n`;
