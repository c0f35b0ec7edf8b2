// Tests of dictation: with the speech recognition of the browser, which the tests replace, and with the service.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { composer, expectFocus, messages, send } from "./conversation-page";
import { Account, BrowserWindow, url, withBrowser } from "./harness";

withBrowser();

interface Recognition {
  lang: string;
  calls: string[];
  hear(...pieces: string[]): void;
  fail(error: string): void;
  end(): void;
}

/** Replaces the speech recognition of the browser; the page has the last one as window.heard. */
async function replaceRecognition(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const define = (name: string, value: unknown) => Object.defineProperty(window, name, { value, configurable: true });
    define("webkitSpeechRecognition", undefined);
    define(
      "SpeechRecognition",
      class {
        lang = "";
        calls: string[] = [];
        onresult: ((event: object) => void) | null = null;
        onerror: ((event: object) => void) | null = null;
        onend: (() => void) | null = null;
        constructor() {
          define("heard", this);
        }
        start() {
          this.calls.push("start");
        }
        stop() {
          this.calls.push("stop");
          this.onend?.();
        }
        abort() {
          this.calls.push("abort");
          this.onend?.();
        }
        hear(...pieces: string[]) {
          this.onresult?.({ results: pieces.map((transcript) => [{ transcript }]) });
        }
        fail(error: string) {
          this.onerror?.({ error });
          this.onend?.();
        }
      },
    );
  });
}

const recognition = <T>(page: Page, use: (heard: Recognition) => T) =>
  page.evaluate<T>(`(${use.toString()})(window.heard)`);
const dictate = (page: Page) => page.getByRole("button", { name: "Dictate", exact: true });
const stopDictating = (page: Page) => page.getByRole("button", { name: "Stop dictating" });
const listening = (page: Page) => page.waitForFunction(() => "heard" in window);

async function open(): Promise<{ visit: BrowserWindow; page: Page }> {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/health", account, { locale: "en-GB" });
  await replaceRecognition(visit.page);
  await visit.page.goto(url);
  await composer(visit.page).waitFor();
  return { visit, page: visit.page };
}

describe("dictation with the browser", () => {
  test("shows what is heard in the field, after the text that is there, until it is stopped", async () => {
    const { visit, page } = await open();
    await composer(page).fill("About tides:");
    await dictate(page).click();
    await listening(page);
    expect(await recognition(page, ({ lang, calls }) => ({ lang, calls }))).toEqual({
      lang: "en-GB",
      calls: ["start"],
    });
    await recognition(page, (heard) => heard.hear("why are"));
    await expect.poll(() => composer(page).inputValue()).toBe("About tides: why are");
    await recognition(page, (heard) => heard.hear("why are there two"));
    await expect.poll(() => composer(page).inputValue()).toBe("About tides: why are there two");
    await stopDictating(page).click();
    await dictate(page).waitFor();
    expect(await recognition(page, ({ calls }) => calls)).toContain("stop");
    await visit.close();
  });

  test("ends with Escape, and when the message is sent", async () => {
    const { visit, page } = await open();
    await dictate(page).click();
    await listening(page);
    await composer(page).press("Escape");
    await dictate(page).waitFor();
    await dictate(page).click();
    await stopDictating(page).waitFor();
    await recognition(page, (heard) => heard.hear("why"));
    await expect.poll(() => composer(page).inputValue()).toBe("why");
    await send(page, "Why? [[script tokens=3 ttft=0ms interval=0ms]]");
    await messages(page).nth(1).waitFor();
    await dictate(page).waitFor();
    await recognition(page, (heard) => heard.hear("why", "too late"));
    expect(await composer(page).inputValue()).toBe("");
    await visit.close();
  });

  test("says why it does not work", async () => {
    const { visit, page } = await open();
    for (const [error, text] of [
      ["not-allowed", "Turnstone may not use the microphone. Allow it in the settings of your browser."],
      ["audio-capture", "No microphone was found."],
      ["network", "Couldn't turn your speech into text."],
    ] as const) {
      await page.evaluate(() => Reflect.deleteProperty(window, "heard"));
      await dictate(page).click();
      await listening(page);
      await page.evaluate((name) => (window as unknown as { heard: Recognition }).heard.fail(name), error);
      await page.getByText(text, { exact: true }).waitFor();
      await dictate(page).waitFor();
    }
    await visit.close();
  });

  test("there is no button where nothing turns speech into text", async () => {
    const visit = await BrowserWindow.open("/health", await Account.register());
    const { page } = visit;
    await page.addInitScript(() => {
      for (const name of ["SpeechRecognition", "webkitSpeechRecognition"])
        if (name in window) Reflect.deleteProperty(window, name);
    });
    await page.goto(url);
    await composer(page).waitFor();
    expect(await dictate(page).count()).toBe(0);
    await visit.close();
  });
});

describe("dictation with the service", () => {
  /** Opens the app as if the service turned recordings into text. */
  async function openWithService(): Promise<{ visit: BrowserWindow; page: Page }> {
    const visit = await BrowserWindow.open("/health", await Account.register());
    const { page } = visit;
    await visit.context.grantPermissions(["microphone"], { origin: url });
    await page.addInitScript(() => {
      // A tone in place of a microphone, which the browser of the tests does not have.
      navigator.mediaDevices.getUserMedia = () => {
        const context = new AudioContext();
        const tone = context.createOscillator();
        const to = context.createMediaStreamDestination();
        tone.connect(to);
        tone.start();
        return Promise.resolve(to.stream);
      };
      const { start } = MediaRecorder.prototype;
      MediaRecorder.prototype.start = function (...args) {
        this.addEventListener(
          "dataavailable",
          ({ data }) => data.size > 0 && Object.assign(window, { recorded: true }),
        );
        start.apply(this, args);
      };
    });
    await page.route(url + "/", async (route) => {
      const response = await route.fetch();
      const document = (await response.text()).replace(
        'name="turnstone-transcription" content="false"',
        'name="turnstone-transcription" content="true"',
      );
      await route.fulfill({ response, body: document });
    });
    await page.goto(url);
    await composer(page).waitFor();
    return { visit, page };
  }

  test("sends the recording, adds its text, and repeats a request that failed", async () => {
    const { visit, page } = await openWithService();
    const requests: { type: string; size: number; url: string }[] = [];
    await page.route(/\/transcriptions/, async (route) => {
      const request = route.request();
      const size = request.postDataBuffer()?.length ?? 0;
      requests.push({ type: request.headers()["content-type"] ?? "", size, url: request.url() });
      if (requests.length === 1)
        return route.fulfill({
          status: 503,
          contentType: "application/problem+json",
          headers: { "Retry-After": "5" },
          body: JSON.stringify({ type: "about:blank", title: "", status: 503, detail: "", code: "unavailable" }),
        });
      return route.fulfill({ json: { text: "Why are there two tides?" } });
    });
    await dictate(page).click();
    await stopDictating(page).waitFor();
    await page.waitForFunction(() => "recorded" in window);
    await stopDictating(page).click();
    await page.getByText("Couldn't turn your speech into text.").waitFor();
    await page.getByRole("button", { name: "Try again" }).click();
    await expect.poll(() => composer(page).inputValue()).toBe("Why are there two tides?");
    expect(requests).toHaveLength(2);
    expect(requests[1]!.type).toMatch(/^audio\/(webm|mp4|ogg)/);
    expect(requests[1]!.url).toContain("language=en");
    expect(requests[1]!.size).toBe(requests[0]!.size);
    expect(requests[0]!.size).toBeGreaterThan(0);
    await dictate(page).waitFor();
    await composer(page).focus();
    await expectFocus(composer(page));
    await visit.close();
  });

  test("says when the microphone is not allowed, and when nothing was heard", async () => {
    const { visit, page } = await openWithService();
    await page.evaluate(() => {
      const media = navigator.mediaDevices;
      const original = media.getUserMedia.bind(media);
      media.getUserMedia = () => {
        media.getUserMedia = original;
        return Promise.reject(new DOMException("denied", "NotAllowedError"));
      };
    });
    await dictate(page).click();
    await page.getByText("Turnstone may not use the microphone.").waitFor();
    await page.route(/\/transcriptions/, (route) => route.fulfill({ json: { text: "" } }));
    await dictate(page).click();
    await stopDictating(page).click();
    await page.getByText("Nothing was heard. Try again.").waitFor();
    await dictate(page).waitFor();
    await visit.close();
  });
});
