// The room of a conversation: what a person finds there by its name, what they hear, and what the service has of it.
import type { Locator, Page, Route } from "playwright-core";
import { expect } from "vitest";
import { hold, type Account } from "./site";

export const composer = (page: Page) => page.getByRole("textbox", { name: "Message", exact: true });
export const messages = (page: Page) => page.locator("[data-message]");
export const stop = (page: Page) => page.getByRole("button", { name: "Stop", exact: true });
export const sidebar = (page: Page) => page.getByRole("navigation", { name: "Conversations" });
/** What is queued, held, or on its way to the answer. */
export const waiting = (page: Page) => page.getByRole("region", { name: "What waits" });

/** The window onto the conversation. */
export const scroller = (page: Page) => page.locator("[data-scroll]");
/** Waits until the end of the conversation is in sight: who scrolls before the page has got there is taken along. */
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
/** Which message has the focus, counted from the first; -1: none. */
export const focusedMessage = (page: Page) => messages(page).evaluateAll((all) => all.findIndex((one) => one.contains(document.activeElement)));

/** Asks for an answer that takes no time. */
export const fast = (tokens: number) => `[[script tokens=${tokens} ttft=0ms interval=0ms]]`;
/** Asks for an answer that nobody sees the end of: a token each 30 ms, for ten minutes, whatever the machine does. */
export const endless = "Something long. [[script tokens=20000 ttft=10ms interval=30ms]]";

/** The question whose answer waits behind its fortieth token until it is let go, so that it lasts as long as a test needs. */
export interface Held {
  text: string;
  letGo(): Promise<void>;
}

export async function held(tokens = 80, more = ""): Promise<Held> {
  const name = crypto.randomUUID();
  const letGo = await hold(name);
  return { text: `Something long. [[script tokens=${tokens} ttft=10ms interval=10ms hold=40:${name} ${more}]]`, letGo };
}

/** Writes and sends by the keyboard. */
export async function send(page: Page, text: string, keys = "Enter"): Promise<void> {
  await composer(page).fill(text);
  await composer(page).press(keys);
}

/** Waits until the end of the answer is told. */
export async function finished(page: Page): Promise<void> {
  await stop(page).waitFor({ state: "hidden", timeout: 45_000 });
  await page.getByText("Stopping…", { exact: true }).first().waitFor({ state: "hidden" });
}

/** What a reader holds of the last answer, without the words of its controls. */
export async function heldText(page: Page): Promise<string> {
  return messages(page).last().locator(".prose").evaluateAll((parts) => parts.map((part) => (part as HTMLElement).innerText.trim()).join("\n"));
}

/** Waits until the answer is under way. */
export async function speaking(page: Page): Promise<void> {
  await stop(page).waitFor();
  await expect.poll(async () => (await heldText(page)).length).toBeGreaterThan(20);
}

export const expectFocus = (what: Locator) => expect.poll(() => what.evaluate((element) => element === document.activeElement)).toBe(true);

export interface Stored {
  message_id: string;
  role: string;
  status: string;
  sibling_count: number;
  parts: { type: string; text?: string; kind?: string; truncated?: boolean }[];
}

/** The messages of the conversation, as the service has them. */
export async function stored(account: Account, conversation: string): Promise<Stored[]> {
  return (await account.read<{ data: Stored[] }>(`/conversations/${conversation}/messages`)).data;
}

export const textOf = ({ parts }: Stored) => parts.map((part) => part.text ?? "").join("");

/** The queue of the conversation, what it has let go of included. */
export async function queue(account: Account, conversation: string): Promise<string[]> {
  const { data } = await account.read<{ data: { state: string; content: string }[] }>(`/conversations/${conversation}/follow-ups`);
  return data.map(({ state, content }) => `${state}: ${content}`);
}

/** Keeps requests from the service until the test answers them. */
export async function intercept(page: Page, method: string, address: string | RegExp): Promise<Route[]> {
  const asked: Route[] = [];
  await page.route(address, (route) => (route.request().method() === method ? void asked.push(route) : route.fallback()));
  return asked;
}

/** A refusal as the service writes it, with further headers and members. */
export function refusal(status: number, code: string, detail = "No.", headers: Record<string, string> = {}, more: object = {}): { status: number; headers: Record<string, string>; body: string } {
  return { status, headers: { "Content-Type": "application/problem+json", ...headers }, body: JSON.stringify({ type: "about:blank", title: code, status, detail, code, request_id: "req_1", ...more }) };
}

export interface Heard {
  /** It interrupts what is being said. */
  urgent: boolean;
  text: string;
}

/** Listens from now on to what the page says to who does not look at it. */
export async function listen(page: Page): Promise<() => Promise<Heard[]>> {
  await page.evaluate(() => {
    const heard: Heard[] = [];
    const before = new Map<Element, string>();
    const look = (quiet: boolean) => {
      for (const region of document.querySelectorAll('[role="status"], [role="alert"]')) {
        const text = region.textContent!.replace(/\s+/g, " ").trim();
        if (before.get(region) === text) continue;
        before.set(region, text);
        if (!quiet && text !== "") heard.push({ urgent: region.getAttribute("role") === "alert", text });
      }
    };
    look(true);
    new MutationObserver(() => look(false)).observe(document.body, { subtree: true, childList: true, characterData: true });
    Object.assign(window, { heard });
  });
  return () => page.evaluate(() => (window as unknown as { heard: Heard[] }).heard);
}
