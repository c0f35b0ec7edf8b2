// Copies an answer as Markdown and, for editors that take it, as the formatted text that the page displays.
import type { Message } from "../../generated/events";
import { copyText } from "../../parts/export-text";
import { markdownOf } from "./markdown-of";

/** The attributes that another editor understands. */
const kept = new Set(["href", "colspan", "rowspan", "start", "dir", "xmlns", "display"]);

/** What belongs to the page and not to the text. */
export const ofPage =
  'button, figcaption, time, .sr-only, [hidden]:not([hidden="until-found"]), [aria-hidden], [data-details], li > a[href^="#"], svg';

/** Copies an answer; returns false if the browser does not allow it. */
export async function copyMessage({ message_id, parts }: Message): Promise<boolean> {
  const markdown = markdownOf(parts);
  const row = document.querySelector(`[data-row="${CSS.escape(message_id)}"]`);
  if (row === null || typeof ClipboardItem === "undefined") return copyText(markdown);
  const blob = (text: string, type: string) => new Blob([text], { type });
  try {
    await navigator.clipboard.write([
      new ClipboardItem({
        "text/plain": blob(markdown, "text/plain"),
        "text/html": blob(formattedTextOf(row), "text/html"),
      }),
    ]);
    return true;
  } catch {
    return copyText(markdown);
  }
}

/** Returns the text and the code of a row as HTML, without what is of the page. */
function formattedTextOf(row: Element): string {
  const blocks = [...row.querySelectorAll(".prose, figure:has([data-code])")];
  return blocks
    .filter((block) => block.parentElement?.closest(".prose") == null)
    .map((block) => {
      const copy = block.cloneNode(true) as Element;
      const figures = copy.matches("figure") ? [copy] : [...copy.querySelectorAll("figure:has([data-code])")];
      const codes = figures.map((figure) => {
        const pre = document.createElement("pre");
        const code = pre.appendChild(document.createElement("code"));
        code.textContent = figure.querySelector("[data-code]")!.textContent;
        figure.replaceWith(pre);
        return pre;
      });
      for (const task of copy.querySelectorAll("[data-task]"))
        task.replaceWith(task.childElementCount > 0 ? "☑ " : "☐ ");
      const result = copy.matches("figure") ? codes[0]! : copy;
      for (const element of result.querySelectorAll(ofPage)) element.remove();
      for (const link of result.querySelectorAll('a:not([href*=":"])')) link.removeAttribute("href"); // within this page
      for (const element of [result, ...result.querySelectorAll("*")])
        for (const { name } of [...element.attributes]) if (!kept.has(name)) element.removeAttribute(name);
      return result.outerHTML;
    })
    .join("\n");
}
