import { renderToString } from "react-dom/server";
import { describe, expect, test, vi } from "vitest";
import { random } from "../turn/turn.fake";

vi.stubGlobal("location", { origin: "http://127.0.0.1" });
const { Markdown } = await import("./markdown");
const { toPlainText } = await import("./plain");
await (await import("./close-marks")).loadMarkCloser();

const html = (text: string, open = false) =>
  renderToString(<Markdown text={text} streaming={open} />).replaceAll("<!-- -->", "");

describe("rendered Markdown", () => {
  test("raw HTML is shown as text", () => {
    const shown = html(
      '<img src=x onerror="run()"> and <b>bold</b>\n\n<script>run()</script>\n\n<iframe src="https://a.example"></iframe>',
    );
    expect(shown).not.toMatch(/<(img|b|script|iframe)\b/);
    expect(shown).toContain("&lt;script&gt;run()&lt;/script&gt;");
    expect(shown).toContain("&lt;b&gt;bold&lt;/b&gt;");
  });

  test("links are http, https or mailto only, open in a new tab and send no referrer", () => {
    expect(html("[a](https://a.example/x)")).toContain(
      '<a href="https://a.example/x" title="https://a.example/x" target="_blank" rel="noopener noreferrer nofollow">a</a>',
    );
    for (const address of [
      "javascript:run()",
      "JaVaScRiPt:run()",
      "data:text/html,x",
      "/chat",
      "#x",
      "vbscript:x",
      "&#106;avascript:run()",
    ])
      expect(html(`[a](${address})`), address).not.toContain("href");
    expect(html("<javascript:run()>")).not.toContain("href");
  });

  test("images are not fetched: a link with their alternative text is shown", () => {
    const shown = html("![a cat](https://a.example/cat.png)");
    expect(shown).not.toContain("<img");
    expect(shown).toContain('href="https://a.example/cat.png"');
    expect(shown).toContain("a cat");
    expect(html("![x](javascript:run())")).not.toContain("javascript");
  });

  test("heading levels start below the heading of the message", () => {
    expect(html("# One\n\n#### Two")).toMatch(/<h3[^>]*>One<\/h3>[\s\S]*<h4[^>]*>Two<\/h4>/);
    expect(html("> # Quoted")).not.toMatch(/<h\d/);
  });

  test("text that is not a formula is unchanged", () => {
    expect(html("`$a$` and $5")).toMatch(/<code[^>]*>\$a\$<\/code> and \$5/);
    expect(html("- one\n\n  ```sh\n  echo $a$ $b$\n  ```")).toContain("echo $a$ $b$");
    expect(html("[x](https://a.example/$a$?b)")).toContain('href="https://a.example/$a$?b"');
  });

  test("Markdown inside a formula is not parsed", () => {
    const shown = html("So $a*b*c$ and *d*.");
    expect(shown).toContain("<em>d</em>");
    expect(shown).not.toContain("<em>b</em>");
    expect(shown).not.toMatch(/[\uE000\uE001]/);
  });

  test("reference links find definitions in later blocks", () => {
    expect(html("See [this][1].\n\nMore.\n\n[1]: https://a.example/one")).toContain('href="https://a.example/one"');
  });

  test("footnotes are numbered in the order of the text, and listed at its end", () => {
    const shown = html("One.[^b] Two.[^a]\n\n[^a]: Note *a*.\n\n    More.\n[^b]: https://b.example\n\nEnd. `[^a]`");
    expect(shown).toMatch(/One\.<sup><a href="#[^"]+1"[^>]*>1<\/a><\/sup> Two\.<sup><a [^>]*>2<\/a><\/sup>/);
    expect(shown).toMatch(
      /End\..*<section [^>]*class="footnotes"><ol><li id="[^"]+1".*b\.example.*<li id="[^"]+2".*Note <em>a<\/em>.*More\./,
    );
    expect(shown).toMatch(/<code[^>]*>\[\^a\]<\/code>/);
    const [target, back] = [/<li id="([^"]+)"/.exec(shown)![1]!, /<a href="#([^"]+r1)"/.exec(shown)![1]!];
    expect(shown).toContain(`href="#${target}"`);
    expect(shown).toContain(`data-target="${back}"`);
  });

  test("a label without its footnote is text, and a number while the text streams", () => {
    expect(html("A fact.[^1]")).toContain("A fact.[^1]");
    expect(html("A fact.[^1]", true)).toContain("A fact.<sup>1</sup>");
    expect(html("A fact.[^1]\n\n[^2]: Unused.")).toMatch(/\[\^1\].*Unused\./);
  });

  test("alerts have a title; another word in brackets is text", () => {
    expect(html("> [!WARNING]\n> Look *out*.")).toMatch(
      /<blockquote dir="auto" data-alert="warning"><p data-title="">Warning<\/p><p>Look <em>out<\/em>\.<\/p><\/blockquote>/,
    );
    expect(html("> [!note]\n>\n> - a")).toMatch(/data-alert="note"><p data-title="">Note<\/p><ul>/);
    for (const [source, shown] of [
      ["**Look**", "<strong>Look</strong>"],
      ["==Look==", "<mark>Look</mark>"],
      ["$x$", "<span"],
    ])
      expect(html(`> [!TIP]\n> ${source} out.`)).toMatch(new RegExp(`Tip</p><p>${shown}.*out\\.</p>`));
    expect(html("> [!TIP]  \n> **Look**")).toMatch(/Tip<\/p><p><strong>Look/);
    expect(html("> [!TIP]**Look**")).not.toContain("data-alert");
    expect(html("> [!OTHER]\n> Look.")).toContain("[!OTHER]");
    expect(html("> [!NOTE] Look.")).not.toContain("data-alert");
  });

  test("text between equals signs is highlighted; comparisons are not", () => {
    expect(html("==a *b*== and b == c == d ===e===")).toMatch(/<mark>a <em>b<\/em><\/mark> and b == c == d ===e===/);
  });

  test("details can be opened, without attributes, and contain Markdown", () => {
    expect(
      html("Before\n<details>\n<summary>More *x*</summary>\n\n- a\n\n```html\n</details>\n```\n\n</details>\n\nAfter"),
    ).toMatch(
      /<p[^>]*>Before<\/p><details dir="auto"><summary>More <em>x<\/em><\/summary><ul>.*<\/ul><figure.*&lt;\/details&gt;.*<\/figure><\/details><p[^>]*>After<\/p>/,
    );
    expect(html("<details><summary>A</summary>B</details>\n\nC")).toMatch(
      /<summary>A<\/summary><p>B<\/p><\/details><p[^>]*>C/,
    );
    expect(html("<details>\n<summary>A</summary>\n\nB", true)).toMatch(/<summary>A<\/summary><p>B/);
    expect(html("<details>\n<details>\nB\n</details>\n</details>").match(/<details/g)).toHaveLength(2);
    for (const unsafe of [
      "<details open>\n",
      '<details ontoggle="run()">\nx\n</details>',
      "<details>\n<summary onclick=x>y</summary>",
    ])
      expect(html(unsafe)).not.toMatch(/<(details|summary) [^>]*on|<details open|<summary o/);
    expect(html("<details>\n".repeat(3_000))).toContain("&lt;details&gt;");
  });

  test("text that is nested very deeply is shown, at some depth as it was written", () => {
    for (const text of [
      `${"> ".repeat(5_000)}deep`,
      `${"- ".repeat(5_000)}deep`,
      `${"*a **b ".repeat(300)}deep`,
      `${"[".repeat(2_000)}deep${"](https://a.example)".repeat(2_000)}`,
      Array.from({ length: 300 }, (_, at) => `${"  ".repeat(at)}- ${at === 299 ? "deep" : "x"}`).join("\n"),
    ]) {
      const shown = html(text);
      expect(shown, text.slice(0, 20)).toContain("deep");
      let [depth, deepest] = [0, 0];
      for (const [tag] of shown.matchAll(/<\/?(?:blockquote|ul|ol|em|strong)\b/g))
        deepest = Math.max(deepest, (depth += tag.startsWith("</") ? -1 : 1));
      expect(deepest, text.slice(0, 20)).toBeLessThanOrEqual(31);
      expect(toPlainText(text)).toContain("deep");
    }
  });

  test("text with very many unclosed marks is shown as plain text", () => {
    expect(html("a_b".repeat(13_000))).toContain('<p dir="auto" class="whitespace-pre-wrap">a_ba_b');
  });

  test("a formula with bars does not split a table cell", () => {
    const shown = html("| a | b |\n|---|---|\n| $|x|$ | 2 |\n");
    expect(shown.match(/<td/g)).toHaveLength(2);
  });

  test("lists, tables, tasks and struck text are rendered as GitHub does, except single tildes", () => {
    expect(html("- a\n- b")).toContain('<ul dir="auto"><li>a</li><li>b</li></ul>');
    expect(html("3. a\n\n4. b")).toContain('<ol dir="auto" start="3"><li><p>a</p></li><li><p>b</p></li></ol>');
    expect(html("- [x] a")).toMatch(/<li><span data-task=""[^>]*aria-label="Done"/);
    expect(html("| a | b |\n|---|--:|\n| 1 |")).toMatch(
      /<th>a<\/th><th style="text-align:right">b<\/th>.*<td>1<\/td><td/,
    );
    expect(html("~~a~~ ~b~")).toContain("<del>a</del> ~b~");
  });

  test("a few elements of HTML are rendered, without attributes", () => {
    expect(html("H<sub>2</sub>O x<sup>*n*</sup> <kbd>Esc</kbd> a<br>b")).toMatch(
      /H<sub>2<\/sub>O x<sup><em>n<\/em><\/sup> <kbd>Esc<\/kbd> a<br\/?>b/,
    );
    expect(html('<kbd onclick="run()">x</kbd> <sub>open')).not.toMatch(/<(kbd|sub)\b/);
  });

  test("character references are decoded in text and in links, but not in code", () => {
    expect(html("&copy; &#8212; `&copy;`")).toContain('© — <code dir="ltr">&amp;copy;</code>');
    expect(html("[x](https://a.example/?a=1&amp;b=2)")).toContain('href="https://a.example/?a=1&amp;b=2"');
  });

  test("open marks are closed while the text streams, and only then", () => {
    expect(html("Some **bold", true)).toContain("<strong>bold</strong>");
    expect(html("Some **bold", false)).toContain("**bold");
    expect(html("``", true)).not.toContain("``");
  });

  test("no prefix of a text renders a forbidden element, an event handler or a placeholder", () => {
    const pieces = [
      "# ",
      "*",
      "**",
      "`",
      "```js\n",
      "```",
      "[a](",
      "https://a.example)",
      "![",
      "|a|b|\n|-|-|\n",
      "$x",
      "$$\n",
      "\\(",
      "<b",
      "<!--",
      "- ",
      "1. ",
      "> ",
      "\n",
      "\n\n",
      "word ",
      "海",
      "\u202e",
      "&lt;",
      "[^1]: ",
      "~~",
      "==",
      "<details>\n",
      "<summary>",
      "</details>\n",
      "[^1]",
      "> [!NOTE]\n",
      "<script>",
    ];
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
