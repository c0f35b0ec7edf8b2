// Helpers for the conversation page: its controls by accessible name, its announcements, and the stored messages.
import type { Locator, Page, Route } from "playwright-core";
import { expect } from "vitest";
import { hold, type Account } from "./harness";

export const composer = (page: Page) => page.getByRole("textbox", { name: "Message", exact: true });
export const messages = (page: Page) => page.locator("[data-message]");
export const stop = (page: Page) => page.getByRole("button", { name: "Stop", exact: true });
export const sidebar = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
/** The list of queued and held messages and of steering inputs. */
export const waiting = (page: Page) => page.getByRole("region", { name: "Up next" });

/** The scroll container of the conversation. */
export const scroller = (page: Page) => page.locator("[data-scroll]");
/** Waits until the end of the conversation is visible. A page scrolled earlier would still jump to the end. */
export const atEnd = (page: Page) =>
  expect
    .poll(() =>
      scroller(page).evaluate(async (element) => {
        element.scrollTo(0, element.scrollHeight);
        await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
        return element.scrollHeight - element.clientHeight - element.scrollTop;
      }),
    )
    .toBeLessThan(48);
/** Returns the index of the message that has the focus; -1: none. */
export const focusedMessage = (page: Page) =>
  messages(page).evaluateAll((all) => all.findIndex((one) => one.contains(document.activeElement)));

/** A directive for an answer without delays. */
export const fast = (tokens: number) => `[[script tokens=${tokens} ttft=0ms interval=0ms]]`;
/** A question whose answer outlasts every test: ten tokens a second for half an hour. */
export const endless = "Something long. [[script tokens=20000 ttft=10ms interval=100ms]]";

/** A question whose answer pauses in its first sentence until release, so that it lasts as long as a test needs. */
export interface PausedAnswer {
  text: string;
  release(): Promise<void>;
}

export async function pausedAnswer(tokens = 80, more = ""): Promise<PausedAnswer> {
  const name = crypto.randomUUID();
  const release = await hold(name);
  return {
    text: `Something long. [[script tokens=${tokens} ttft=10ms interval=10ms hold=13:${name} ${more}]]`,
    release,
  };
}

/** Enters a message and sends it by keyboard. */
export async function send(page: Page, text: string, keys = "Enter"): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press(keys);
}

/** Waits until the page shows that the answer has ended. */
export async function waitForAnswerEnd(page: Page): Promise<void> {
  await stop(page).waitFor({ state: "hidden" });
  await page.getByText("Stopping…", { exact: true }).first().waitFor({ state: "hidden" });
}

/** Returns the displayed text of the last answer, without the texts of its controls. */
export async function lastAnswerText(page: Page): Promise<string> {
  return messages(page)
    .last()
    .locator(".prose")
    .evaluateAll((parts) => parts.map((part) => (part as HTMLElement).innerText.trim()).join("\n"));
}

/** Waits until the answer is streaming and some of its text is displayed. */
export async function waitForAnswerText(page: Page): Promise<void> {
  await stop(page).waitFor();
  await expect.poll(async () => (await lastAnswerText(page)).length).toBeGreaterThan(20);
}

export const expectFocus = (what: Locator) =>
  expect.poll(() => what.evaluate((element) => element === document.activeElement)).toBe(true);

export interface Stored {
  message_id: string;
  role: string;
  status: string;
  sibling_count: number;
  parts: { type: string; text?: string; kind?: string; truncated?: boolean }[];
  attachments: string[];
}

/** Returns the stored messages of the conversation. */
export async function stored(account: Account, conversation: string): Promise<Stored[]> {
  return (await account.read<{ data: Stored[] }>(`/conversations/${conversation}/messages`)).data;
}

export const textOf = ({ parts }: Stored) => parts.map((part) => part.text ?? "").join("");

/** Returns the follow-ups of the conversation, started and cancelled ones included. */
export async function queue(account: Account, conversation: string): Promise<string[]> {
  const { data } = await account.read<{ data: { state: string; content: string }[] }>(
    `/conversations/${conversation}/follow-ups`,
  );
  return data.map(({ state, content }) => `${state}: ${content}`);
}

/** The main heading of a page that has loaded. A conversation that loads has another one. */
export const mainHeading = (page: Page): Locator => page.locator("h1:not(.animate-delayed)");

/** Intercepts requests: each waits in the returned list until the test continues or fulfils it. */
export async function intercept(page: Page, method: string, address: string | RegExp): Promise<Route[]> {
  const requests: Route[] = [];
  await page.route(address, (route) =>
    route.request().method() === method ? void requests.push(route) : route.fallback(),
  );
  return requests;
}

/** Returns a refusal in the format of the service, with additional headers and members. */
export function refusal(
  status: number,
  code: string,
  detail = "No.",
  headers: Record<string, string> = {},
  more: object = {},
): { status: number; headers: Record<string, string>; body: string } {
  return {
    status,
    headers: { "Content-Type": "application/problem+json", ...headers },
    body: JSON.stringify({ type: "about:blank", title: code, status, detail, code, request_id: "req_1", ...more }),
  };
}

export interface Announcement {
  /** Whether it interrupts the current speech. */
  urgent: boolean;
  text: string;
}

/** Records the announcements of the page for screen readers from now on. Returns a function that returns them. */
export async function recordAnnouncements(page: Page): Promise<() => Promise<Announcement[]>> {
  await page.evaluate(() => {
    const announcements: Announcement[] = [];
    const before = new Map<Element, string>();
    const record = (quiet: boolean) => {
      for (const region of document.querySelectorAll('[role="status"], [role="alert"]')) {
        const text = region.textContent!.replace(/\s+/g, " ").trim();
        if (before.get(region) === text) continue;
        before.set(region, text);
        if (!quiet && text !== "") announcements.push({ urgent: region.getAttribute("role") === "alert", text });
      }
    };
    record(true);
    new MutationObserver(() => record(false)).observe(document.body, {
      subtree: true,
      childList: true,
      characterData: true,
    });
    Object.assign(window, { announcements });
  });
  return () => page.evaluate(() => (window as unknown as { announcements: Announcement[] }).announcements);
}

/** Shows these parts as those of every answer, in place of what the model has written. */
export async function replaceAnswers(page: Page, parts: readonly object[]): Promise<void> {
  await page.route(/\/conversations\/conv_\w+\/messages/, async (route) => {
    const response = await route.fetch();
    const list = (await response.json()) as { data: { role: string }[] };
    const data = list.data.map((one) => (one.role === "assistant" ? { ...one, parts } : one));
    await route.fulfill({ response, json: { ...list, data } });
  });
}
