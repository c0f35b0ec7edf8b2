// The frame of artifacts: it shows every kind, reports errors, and lets no request out. The counting server counts connections
// and datagrams, and the log of Chromium's network shows lookups and connections that never reach a server.
import { createSocket } from "node:dgram";
import { readdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { escapes } from "./escapes";
import { hangGuard } from "./hang-guard";
import { flags, url } from "./harness";

const content = process.env["TURNSTONE_CONTENT"] ?? "http://127.0.0.1:8082";

/** Counts everything that reaches it. */
class Counter {
  readonly connections: string[] = [];
  private constructor(
    readonly port: number,
    readonly udp: number,
    readonly close: () => void,
  ) {}

  static async start(): Promise<Counter> {
    const server: Server = createServer((request, response) => {
      counter.connections.push(`${request.method} ${request.headers.host}${request.url}`);
      response.setHeader("Access-Control-Allow-Origin", "*").end("");
    });
    const socket = createSocket("udp4");
    await new Promise<void>((done) => server.listen(0, "0.0.0.0", done));
    await new Promise<void>((done) => socket.bind(0, "127.0.0.1", done));
    const counter = new Counter((server.address() as AddressInfo).port, socket.address().port, () => {
      server.closeAllConnections();
      server.close();
      socket.close();
    });
    server.on("connection", () => counter.connections.push("connection"));
    socket.on("message", () => counter.connections.push("datagram"));
    return counter;
  }

  /** The HTML of an attempt, whose address names it. */
  attempt(n: number): string {
    const address = `http://a${n}x.localhost:${this.port}/leak`;
    return Object.values(escapes)[n]!.replaceAll("URL", address).replaceAll("UDP", String(this.udp));
  }
}

interface Shown {
  reports: { type: string; message?: string }[];
}

/** Runs an artifact in a new frame of the page until it has rendered, and then for some frames more. */
async function run(page: Page, artifact: { kind: string; content: string }): Promise<Shown> {
  return page.evaluate(async ({ kind, content }) => {
    const module = (window as unknown as { sandbox: typeof import("../src/sandbox/sandbox") }).sandbox;
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", module.frameAttributes.sandbox);
    frame.referrerPolicy = module.frameAttributes.referrerPolicy;
    frame.allow = module.frameAttributes.allow;
    document.body.append(frame);
    const reports: { type: string; message?: string }[] = [];
    await new Promise<void>((done) => {
      module.runArtifact(frame, { kind: kind as "html", content }, (report) => {
        reports.push(report);
        done();
      });
    });
    for (let i = 0; i < 10; i++) await new Promise((done) => requestAnimationFrame(done));
    await new Promise((done) => requestIdleCallback(done));
    return { reports };
  }, artifact);
}

/** Opens the page of the app, whose policy applies to the frames in it. */
async function open(browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${url}/`);
  const name = (await readdir(join(import.meta.dirname, "../dist/assets"))).find((file) =>
    /^sandbox-.*\.js$/.test(file),
  )!;
  await page.evaluate(`import("/assets/${name}").then((module) => { window.sandbox = module; })`); // as text, so that it is not transformed
  return page;
}

const launch = (...more: string[]) =>
  chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium-headless-shell",
    args: [...flags.split(" "), ...more],
  });

describe("the frame of artifacts", () => {
  test("there are at least sixty attempts to leave it", () =>
    expect(Object.keys(escapes).length).toBeGreaterThanOrEqual(60));

  test("lets no request out", async () => {
    const counter = await Counter.start();
    const log = join(tmpdir(), `sandbox-${crypto.randomUUID()}.json`);
    const browser = await launch(`--log-net-log=${log}`);
    const names = Object.keys(escapes);
    const page = await open(browser);
    const opened: string[] = [];
    page.context().on("page", (other) => opened.push(other.url()));
    for (let n = 0; n < names.length; n++) {
      await run(page, { kind: names[n]!.startsWith("svg") ? "svg" : "html", content: counter.attempt(n) });
      expect(page.url(), names[n]).toBe(`${url}/`);
      // What no policy stops needs an element or a function that the frame does not have. Some builds of Chromium do not connect early.
      const frame = page.frames().at(-1)!;
      const elements = () =>
        frame
          .evaluate(
            () => document.querySelectorAll("link, base, iframe, frame, object, embed, portal, fencedframe").length,
          )
          .catch(() => null); // the attempt navigates
      await expect
        .poll(async () => (frame.url() === `${content}/` ? await elements() : 0), { message: names[n]! })
        .toBe(0);
    }
    await page.waitForLoadState("networkidle", { timeout: hangGuard });
    expect(counter.connections, "requests").toEqual([]);
    expect(opened, "windows").toEqual([]);

    // The control: the same attempts on a page without the sandbox reach the counter and the log.
    const control = await browser.newPage();
    await control.setContent(counter.attempt(names.indexOf("image")) + counter.attempt(names.indexOf("WebRTC")));
    await expect.poll(() => counter.connections.some((c) => c.startsWith("GET"))).toBe(true);
    await expect.poll(() => counter.connections.includes("datagram")).toBe(true);
    await browser.close();
    const leaked = new Set(
      [...(await readFile(log, "utf8")).matchAll(/a(\d+)x\.localhost/g)].map((m) => names[Number(m[1])]!),
    );
    await rm(log);
    expect([...leaked].sort(), "lookups and connections").toEqual(["image"]);
    counter.close();
  });

  test("shows every kind, with the libraries that it uses, and reports errors", async () => {
    const browser = await launch();
    const page = await open(browser);
    const frameText = async (artifact: { kind: string; content: string }, selector: string) => {
      const shown = await run(page, artifact);
      expect(shown.reports, JSON.stringify(artifact)).toEqual([{ type: "rendered" }]);
      const frame = page.frames().at(-1)!;
      await frame.waitForSelector(selector, { state: "attached" });
      return frame.locator(selector).first().textContent();
    };
    const html = (body: string) => ({ kind: "html", content: `<!doctype html><body>${body}</body>` });
    expect(
      await frameText(html(`<p id="p"></p><script>p.textContent = [1,2,3].map((n) => n * n).join()</script>`), "#p"),
    ).toBe("1,4,9");
    expect(
      await frameText({ kind: "svg", content: `<svg viewBox="0 0 9 9"><text>Tide</text></svg>` }, "svg text"),
    ).toBe("Tide");
    expect(await frameText({ kind: "table", content: `name,sum\n"a, ""b""",=1+1\n` }, "td")).toBe(`a, "b"`);
    expect(await frameText({ kind: "document", content: "<h1>Plan</h1><p>One</p>" }, "h1")).toBe("Plan");
    expect(await frameText({ kind: "diagram", content: "graph TD; High-->Low" }, "svg")).toContain("High");
    expect(
      await frameText(
        html(
          `<div id="root"></div><script>ReactDOM.createRoot(root).render(React.createElement("b", null, "React " + React.version))</script>`,
        ),
        "#root b",
      ),
    ).toContain("React 19");
    expect(
      await frameText(html(`<div id="d"></div><script>d3.select("#d").append("i").text("d3 works")</script>`), "#d i"),
    ).toBe("d3 works");
    expect(
      await frameText(
        html(
          `<canvas id="c"></canvas><u id="u"></u><script>u.textContent = new Chart(c, { type: "bar", data: { labels: ["a"], datasets: [{ data: [1] }] } }).config.type</script>`,
        ),
        "#u",
      ),
    ).toBe("bar");
    expect(await frameText(html(`<p id="k"></p><script>katex.render("x^2", k)</script>`), "#k .katex-html")).toContain(
      "x",
    );

    const failed = await run(page, html(`<script>undefinedFunction()</script>`));
    expect(failed.reports[0]).toMatchObject({
      type: "error",
      message: expect.stringContaining("undefinedFunction") as string,
    });
    const wrong = await run(page, { kind: "diagram", content: "graph TD; -->" });
    expect(wrong.reports[0]).toMatchObject({ type: "error" });
    await browser.close();
  });

  test("adds nothing to the history of the browser, and reports that it was left", async () => {
    const browser = await launch();
    const page = await open(browser);
    const reported = () => page.evaluate(() => (window as unknown as { reports: string[] }).reports);
    await page.evaluate(() => {
      const all: string[] = ((window as unknown as { reports: string[] }).reports = []);
      addEventListener("message", ({ data }: MessageEvent<{ type: string }>) => all.push(data.type));
    });
    const before = await page.evaluate(() => history.length);
    await run(page, {
      kind: "html",
      content: `<a href="#there">go</a><p id="there">x</p><script>
        onload = () => { for (let i = 0; i < 20; i++) history.pushState(null, ""); history.pushState({ at: 3 }, "", "#three"); history.go(-1); };
        </script>`,
    });
    const frame = page.frames().at(-1)!;
    expect(await frame.evaluate(() => history.state as unknown)).toEqual({ at: 3 });
    await frame.click("a");
    expect(await frame.evaluate(() => location.hash)).toBe("#there");
    expect(await page.evaluate(() => history.length)).toBe(before);
    expect(page.url()).toBe(`${url}/`);

    for (const address of ["/?leak", "/", "https://elsewhere.example/"]) {
      await page.evaluate(() => (window as unknown as { reports: string[] }).reports.splice(0));
      await run(page, { kind: "html", content: `<script>onload = () => { location.href = "${address}"; };</script>` });
      await expect.poll(reported, { message: address }).toContain("left");
    }
    await browser.close();
  });

  test("has no origin, no cookies and no storage", async () => {
    const browser = await launch();
    const page = await open(browser);
    await run(page, { kind: "html", content: "<p>x</p>" });
    const frame = page.frames().at(-1)!;
    expect(frame.url()).toBe(`${content}/`);
    expect(await frame.evaluate(() => window.origin)).toBe("null");
    expect(
      await frame.evaluate(() => {
        try {
          return document.cookie;
        } catch {
          return "refused";
        }
      }),
    ).toBe("refused");
    expect(
      await frame.evaluate(() => {
        try {
          return String(localStorage.length);
        } catch {
          return "refused";
        }
      }),
    ).toBe("refused");
    await browser.close();
  });
});
