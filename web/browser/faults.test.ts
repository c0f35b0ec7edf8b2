// Tests of faults (killed or frozen service, lost network) through the user interface: the answer continues, nothing is
// repeated or lost, and the displayed notices are true.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import {
  composer,
  waitForAnswerEnd,
  pausedAnswer,
  lastAnswerText,
  messages,
  waitForAnswerText,
  stored,
} from "./conversation-page";
import {
  Account,
  down,
  freeze,
  holdUntilSessionEnds,
  phone,
  sharedAccount,
  thaw,
  up,
  url,
  BrowserWindow,
  withBrowser,
} from "./harness";

withBrowser();

const reconnecting = /^(Reconnecting\.|Can't reach the server\.)/;

async function signInAgain(page: Page, { password }: Account): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "Sign in again" });
  await dialog.getByLabel("Password", { exact: true }).fill(password);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "hidden" });
}

describe("the state of the service between tests", () => {
  for (const [state, inject] of [
    ["killed", down],
    ["frozen", freeze],
  ] as const) {
    test.fails(`a test fails and leaves the service ${state}`, async () => {
      await inject();
      throw new Error("on purpose");
    });

    test(`the next test finds the service running after it was ${state}`, async () => {
      const account = await sharedAccount();
      const visit = await BrowserWindow.open(`/c/${await account.chat("What is 6*7?")}`, account);
      await visit.page
        .getByText(/\b42\b/)
        .first()
        .waitFor();
      await visit.close();
    });
  }
});

describe("faults", () => {
  test("after kill -9 during an answer, two open tabs and a phone opened later show the same answer", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer(150);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const second = await visit.tab(`/c/${conversation}`);
    await expect.poll(async () => (await lastAnswerText(visit.page)).length).toBeGreaterThan(40);
    await expect.poll(async () => (await lastAnswerText(second)).length).toBeGreaterThan(40);
    const seen = await lastAnswerText(visit.page);
    await down();
    await visit.page.getByText(reconnecting).waitFor();
    await up();
    await answer.release();
    await waitForAnswerEnd(visit.page);
    await waitForAnswerEnd(second);
    const later = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await waitForAnswerEnd(later.page);
    const whole = await lastAnswerText(visit.page);
    expect(whole.length).toBeGreaterThan(seen.length);
    await expect.poll(() => lastAnswerText(second)).toBe(whole);
    await expect.poll(() => lastAnswerText(later.page)).toBe(whole);
    const { data } = await account.read<{ data: { role: string; status: string }[] }>(
      `/conversations/${conversation}/messages`,
    );
    expect(data.map((m) => `${m.role} ${m.status}`)).toEqual(["user complete", "assistant complete"]);
    await visit.close();
    await later.close();
  });

  test("a message sent while the service is down survives a reload and is sent once", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await composer(visit.page).fill("What is 6*7?");
    await down();
    await composer(visit.page).press("Enter");
    await visit.page
      .getByText(/^Saved (here|on this device)/)
      .first()
      .waitFor();
    await up();
    await visit.page.reload();
    await visit.page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await waitForAnswerEnd(visit.page);
    const { data } = await account.read<{ data: { role: string }[] }>(`/conversations/${conversation}/messages`);
    expect(data.map((m) => m.role)).toEqual(["user", "assistant", "user", "assistant"]);
    await visit.close();
  });

  test("a network outage is reported by a banner and loses no message; afterwards both answers complete", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer(120);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await expect.poll(async () => (await lastAnswerText(visit.page)).length).toBeGreaterThan(20);
    await visit.context.setOffline(true);
    await visit.page.getByText(/You're offline\. The answer continues on the server/).waitFor();
    await composer(visit.page).fill("And then?");
    await composer(visit.page).press("Enter");
    await visit.page
      .getByText(/^Saved (here|on this device)/)
      .first()
      .waitFor();
    await visit.context.setOffline(false);
    await answer.release();
    await expect
      .poll(
        async () => (await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`)).data.length,
      )
      .toBe(4);
    await waitForAnswerEnd(visit.page);
    await expect.poll(() => visit.page.locator("[data-message]").count()).toBe(4);
    await visit.close();
  });

  test("a second device shows the live answer and can stop it", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account);
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await expect.poll(async () => (await lastAnswerText(mobile.page)).length).toBeGreaterThan(20);
    await mobile.page.getByRole("button", { name: "Stop", exact: true }).click();
    await waitForAnswerEnd(mobile.page);
    await waitForAnswerEnd(laptop.page);
    await expect.poll(() => lastAnswerText(laptop.page)).toBe(await lastAnswerText(mobile.page));
    await messages(laptop.page)
      .last()
      .getByText(/stopped/i)
      .first()
      .waitFor();
    await laptop.close();
    await mobile.close();
  });

  test("after the session has ended, the user signs in again in a dialog, and the message is sent", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const endSession = await holdUntilSessionEnds(visit, /\/chat$/);
    await composer(visit.page).fill("What is 6*7?");
    await composer(visit.page).press("Enter");
    await endSession();
    await signInAgain(visit.page, account);
    await visit.page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await visit.close();
  });

  test("a message is sent even if its refusal without a session is stored only after the user has signed in again", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await composer(page).waitFor();
    // Delays the end of the transaction that stores the refusal.
    await page.evaluate(() => {
      const hook = window as unknown as { stored: () => void; storing: Promise<void> };
      hook.storing = new Promise((resolve) => (hook.stored = resolve));
      const { put } = IDBObjectStore.prototype;
      const { set } = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, "oncomplete")!;
      IDBObjectStore.prototype.put = function (value: { failure?: { status: number } | null }) {
        const { transaction } = this;
        if (value.failure?.status === 401) {
          const ended = transaction.oncomplete!;
          set!.call(transaction, (event: Event) => void hook.storing.then(() => ended.call(transaction, event)));
        }
        return put.call(this, value);
      };
    });
    const endSession = await holdUntilSessionEnds(visit, /\/(chat|draft)$/);
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await composer(page).fill("A next text, whose draft is refused too");
    await endSession();
    await signInAgain(page, account);
    await page.evaluate(() => (window as unknown as { stored: () => void }).stored());
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.goto(`${url}/health`); // ends what the page has changed
    await visit.close();
  });

  test("while a dependency is down, the page reports that the message is saved, and sends it afterwards", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    let refused = 0;
    await visit.page.route(`${url}/chat`, async (route) => {
      if (++refused > 2) return route.continue();
      await route.fulfill({
        status: 503,
        headers: { "Retry-After": "1", "Content-Type": "application/problem+json" },
        body: JSON.stringify({
          type: "about:blank",
          title: "Service Unavailable",
          status: 503,
          detail: "The service cannot do this right now. Try again.",
          code: "unavailable",
          request_id: "req_1",
        }),
      });
    });
    await composer(visit.page).fill("What is 6*7?");
    await composer(visit.page).press("Enter");
    await visit.page
      .getByText(/^Saved (here|on this device)/)
      .first()
      .waitFor();
    await visit.page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    const { data } = await account.read<{ data: unknown[] }>(`/conversations/${conversation}/messages`);
    expect(data.length).toBe(4);
    await visit.close();
  });

  test("with eight tabs that follow live answers, requests still get through", async () => {
    const account = await sharedAccount();
    const turns = await Promise.all(
      Array.from({ length: 3 }, async () => account.startTurn((await pausedAnswer()).text)),
    );
    const visit = await BrowserWindow.open(`/c/${turns[0]!.conversation}`, account);
    const tabs = [visit.page];
    for (let i = 1; i < 8; i++) tabs.push(await visit.tab(`/c/${turns[i % turns.length]!.conversation}`));
    for (const tab of tabs) await expect.poll(async () => (await lastAnswerText(tab)).length).toBeGreaterThan(20);
    const fetched = await tabs[7]!.evaluate(() => fetch("/conversations?limit=1").then((response) => response.status));
    expect(fetched).toBe(200);
    for (const turn of turns) await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn.turn });
    for (const tab of tabs) await waitForAnswerEnd(tab);
    await visit.close();
  });

  test("over the rate limit, a countdown is shown and the message is kept", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await visit.page.route(`${url}/chat`, (route) =>
      route.fulfill({
        status: 429,
        headers: { "Retry-After": "600", "Content-Type": "application/problem+json" },
        body: JSON.stringify({
          type: "about:blank",
          title: "Too Many Requests",
          status: 429,
          detail: "Too many requests. Try again later.",
          code: "rate_limited",
          request_id: "req_1",
        }),
      }),
    );
    await composer(visit.page).fill("What is 6*7?");
    await composer(visit.page).press("Enter");
    await visit.page
      .getByText(/Try again in/)
      .first()
      .waitFor();
    await expect.poll(async () => visit.page.getByText("What is 6*7?").count()).toBeGreaterThan(0);
    await visit.close();
  });

  test("a connection without data counts as lost, and the answer is complete after the reconnect", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer(150);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    await page.clock.install();
    const open = page.waitForResponse(/\/events\?after=\d+$/);
    await page.goto(`${url}/c/${conversation}`);
    await open;
    await waitForAnswerText(page);
    await freeze();
    await page.clock.fastForward(21_000); // a connection without data counts as lost after 20 s
    await page.getByText(reconnecting).waitFor();
    await expectAccessibleInBothColorSchemes(page, "a lost connection");
    await thaw();
    await answer.release();
    await waitForAnswerEnd(page);
    expect((await stored(account, conversation)).map((message) => `${message.role} ${message.status}`)).toEqual([
      "user complete",
      "assistant complete",
    ]);
    const seen = await lastAnswerText(page);
    await page.reload();
    await messages(page).nth(1).waitFor();
    await expect.poll(() => lastAnswerText(page)).toBe(seen);
    await visit.close();
  });
});
