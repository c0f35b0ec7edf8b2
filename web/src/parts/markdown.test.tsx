import { renderToString } from "react-dom/server";
import { describe, expect, test, vi } from "vitest";
import { random } from "../turn/turn.fake";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { Markdown } = await import("./markdown");
await (await import("./closing")).loadClosing();

const html = (text: string, open = false) => renderToString(<Markdown text={text} open={open} />).replaceAll("<!-- -->", "");

describe("Markdown as it is shown", () => {
  test("raw HTML is text", () => {
    const shown = html('<img src=x onerror="run()"> and <b>bold</b>\n\n<script>run()</script>\n\n<iframe src="https://a.example"></iframe>');
    expect(shown).not.toMatch(/<(img|b|script|iframe)\b/);
    expect(shown).toContain("&lt;script&gt;run()&lt;/script&gt;");
    expect(shown).toContain("&lt;b&gt;bold&lt;/b&gt;");
  });

  test("links are followed only to http, https and mailto, in another tab, and tell nobody where they come from", () => {
    expect(html("[a](https://a.example/x)")).toContain('<a href="https://a.example/x" title="https://a.example/x" target="_blank" rel="noopener noreferrer nofollow">a</a>');
    for (const address of ["javascript:run()", "JaVaScRiPt:run()", "data:text/html,x", "/chat", "#x", "vbscript:x", "&#106;avascript:run()"]) expect(html(`[a](${address})`), address).not.toContain("href");
    expect(html("<javascript:run()>")).not.toContain("href");
  });

  test("images are not fetched: their words lead to them", () => {
    const shown = html("![a cat](https://a.example/cat.png)");
    expect(shown).not.toContain("<img");
    expect(shown).toContain('href="https://a.example/cat.png"');
    expect(shown).toContain("a cat");
    expect(html("![x](javascript:run())")).not.toContain("javascript");
  });

  test("headings begin below that of the message", () => {
    expect(html("# One\n\n#### Two")).toMatch(/<h3[^>]*>One<\/h3>[\s\S]*<h4[^>]*>Two<\/h4>/);
    expect(html("> # Quoted")).not.toMatch(/<h\d/);
  });

  test("what is no formula stays as it was written", () => {
    expect(html("`$a$` and $5")).toMatch(/<code>\$a\$<\/code> and \$5/);
    expect(html("- one\n\n  ```sh\n  echo $a$ $b$\n  ```")).toContain("echo $a$ $b$");
    expect(html("[x](https://a.example/$a$?b)")).toContain('href="https://a.example/$a$?b"');
  });

  test("a formula is kept from Markdown", () => {
    const shown = html("So $a*b*c$ and *d*.");
    expect(shown).toContain("<em>d</em>");
    expect(shown).not.toContain("<em>b</em>");
    expect(shown).not.toMatch(/[\uE000\uE001]/);
  });

  test("addresses that are named further below are found, and notes are not lost", () => {
    expect(html("See [this][1].\n\nMore.\n\n[1]: https://a.example/one")).toContain('href="https://a.example/one"');
    expect(html("A fact.[^1]\n\n[^1]: The source of it.")).toContain("The source of it.");
  });

  test("tables keep their cells, with formulas that hold bars", () => {
    const shown = html("| a | b |\n|---|---|\n| $|x|$ | 2 |\n");
    expect(shown.match(/<td/g)).toHaveLength(2);
  });

  test("open marks are closed for the moment, and only for it", () => {
    expect(html("Some **bold", true)).toContain("<strong>bold</strong>");
    expect(html("Some **bold", false)).toContain("**bold");
    expect(html("``", true)).not.toContain("``");
  });

  test("no cut of any text breaks it", () => {
    const pieces = ["# ", "*", "**", "`", "```js\n", "```", "[a](", "https://a.example)", "![", "|a|b|\n|-|-|\n", "$x", "$$\n", "\\(", "<b", "<!--", "- ", "1. ", "> ", "\n", "\n\n", "word ", "海", "\u202e", "&lt;", "[^1]: ", "~~"];
    for (let seed = 1; seed <= 40; seed++) {
      const next = random(seed);
      let text = "";
      for (let piece = 0; piece < 12; piece++) {
        text += pieces[next(pieces.length)]!;
        const shown = html(text, true);
        expect(shown, JSON.stringify(text)).not.toMatch(/<(script|img|iframe|style)|\son\w+=|[\uE000\uE001]/);
      }
    }
  });
});
