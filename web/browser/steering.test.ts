// Tests of the time while an answer streams: steering, withdrawing, queueing and stopping, from any tab and device and
// over an unreliable network. The page never shows a state that the service does not have.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import {
  composer,
  endless,
  expectFocus,
  waitForAnswerEnd,
  pausedAnswer,
  lastAnswerText,
  intercept,
  recordAnnouncements,
  type Announcement,
  messages,
  queue,
  refusal,
  send,
  sidebar,
  waitForAnswerText,
  stop,
  stored,
  textOf,
  waiting,
} from "./conversation-page";
import { Account, phone, sharedAccount, url, BrowserWindow, withBrowser } from "./harness";
import { FaultProxy } from "./fault-proxy";

withBrowser();

const stopped = "You stopped this answer.";

/** Queues a message from another device. */
async function enqueue(account: Account, conversation: string, text: string): Promise<void> {
  await account.request("POST", "/chat", {
    conversation_id: conversation,
    input: [{ type: "text", text }],
    if_busy: "queue",
  });
}

async function states(account: Account, conversation: string): Promise<string[]> {
  return (await stored(account, conversation)).map(({ role, status }) => `${role} ${status}`);
}

describe("steering", () => {
  test("6 interrupting keeps the text so far, marked as cut off; the answer continues with the message", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    await composer(page).fill("Only one sentence, please.");
    await page.getByRole("button", { name: "More ways to send" }).press("Enter");
    await page.getByRole("menuitem", { name: /^Interrupt/ }).press("Enter");
    const answer = messages(page).nth(1);
    await answer.getByText("Cut off here.").waitFor();
    await answer.getByText("Only one sentence, please.", { exact: true }).waitFor();
    await answer.getByText(/^Taking into account: Only one sentence, please\./).waitFor();
    await expectFocus(composer(page));
    const shown = await answer.innerText();
    const positions = ["Cut off here.", "You added", "Taking into account"].map((words) => shown.indexOf(words));
    expect(positions[0]).toBeGreaterThan(0);
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    await composer(page).press("Escape");
    await waitForAnswerEnd(page);
    const { parts } = (await stored(account, conversation))[1]!;
    expect(parts.map(({ type, kind, truncated }) => [kind ?? type, truncated ?? false])).toEqual([
      ["text", true],
      ["steering", false],
      ["text", true],
    ]);
    expect(parts[0]!.text).toMatch(/^The ruddy turnstone/);
    await visit.close();
  });

  test("8 a queued message is listed once, even if the conversation was only partly read since", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    const requests = await intercept(page, "GET", /\/messages/);
    await send(page, "What do they eat?");
    await waiting(page).getByRole("button", { name: "Edit" }).waitFor();
    await expect.poll(() => requests.length).toBe(1);
    expect(await waiting(page).getByRole("listitem").allInnerTexts()).toEqual([
      expect.stringMatching(/^What do they eat\?/),
    ]);
    await requests[0]!.continue();
    await composer(page).press("Escape");
    await waitForAnswerEnd(page);
    await visit.close();
  });

  test("8 a withdrawn input is not applied, and both devices show its state", async () => {
    const account = await sharedAccount();
    const { conversation, turn } = await account.startTurn((await pausedAnswer()).text);
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account);
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await waitForAnswerText(laptop.page);
    await waitForAnswerText(mobile.page);
    await send(laptop.page, "Mention the moon.", "ControlOrMeta+Enter");
    for (const { page } of [laptop, mobile]) await waiting(page).getByText("Changing the answer now").waitFor();
    await waiting(mobile.page).getByText("Mention the moon.").waitFor();
    await waiting(laptop.page).getByRole("button", { name: "Withdraw" }).press("Enter");
    await expectFocus(composer(laptop.page));
    for (const { page } of [laptop, mobile]) {
      await waiting(page).getByText("Withdrawn. Not applied.").waitFor();
      expect(await waiting(page).getByRole("button", { name: "Withdraw" }).count()).toBe(0);
    }
    // Another input is applied, which proves that there was a step that could have applied the first one.
    await send(laptop.page, "Mention the sun.", "ControlOrMeta+Enter");
    await waiting(mobile.page).getByText("Mention the sun.").waitFor();
    await account.request("POST", "/chat/steering", {
      type: "input",
      turn_id: turn,
      client_steering_id: "a",
      delivery: "interrupt",
      input: [{ type: "text", text: "Mention a star." }],
    });
    await messages(laptop.page)
      .nth(1)
      .getByText(/^Taking into account: Mention the sun\.; Mention a star\./)
      .waitFor();
    await composer(laptop.page).press("Escape");
    for (const { page } of [laptop, mobile]) await waitForAnswerEnd(page);
    const text = textOf((await stored(account, conversation))[1]!);
    expect(text).toMatch(/Taking into account: .*sun.*star/s);
    expect(text).not.toContain("moon");
    expect(await queue(account, conversation)).toEqual([]);
    await laptop.close();
    await mobile.close();
  });

  test("8 an input returned at the end of the answer is held, and can be edited and sent", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account);
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await waitForAnswerText(laptop.page);
    await waitForAnswerText(mobile.page);
    await send(laptop.page, "What do they eat?", "ControlOrMeta+Enter");
    await waiting(laptop.page).getByText("Changing the answer now").waitFor();
    await composer(laptop.page).press("Escape");
    for (const { page } of [laptop, mobile]) {
      await waitForAnswerEnd(page);
      await waiting(page)
        .getByRole("listitem")
        .filter({ hasText: "What do they eat?" })
        .getByText(/^On hold: the answer didn't finish/)
        .waitFor();
    }
    expect(await queue(account, conversation)).toEqual(["held: What do they eat?"]);
    await waiting(laptop.page).getByRole("button", { name: "Edit" }).press("Enter");
    const editor = waiting(laptop.page).getByRole("textbox", { name: "Edit the queued message" });
    await editor.fill("What do they drink?");
    // The next change needs no new reading of the conversation.
    let read = (): void => {};
    const mayRead = new Promise<void>((resolve) => (read = resolve));
    await laptop.page.route(new RegExp(`/conversations/${conversation}$`), async (route) => {
      await mayRead;
      await route.continue();
    });
    await editor.press("Enter");
    await expectFocus(composer(laptop.page));
    await waiting(laptop.page).getByRole("button", { name: "Send now: What do they drink?" }).press("Enter");
    await expect
      .poll(() => states(account, conversation))
      .toEqual(["user complete", "assistant cancelled", "user complete", "assistant complete"]);
    expect(textOf((await stored(account, conversation))[2]!)).toBe("What do they drink?");
    read();
    await messages(laptop.page)
      .last()
      .getByText(/You wrote: “What do they drink\?”/)
      .waitFor();
    await laptop.close();
    await mobile.close();
  });
});

describe("the queue", () => {
  test("7 queued messages run one after the other without an open browser", async () => {
    const account = await Account.register(); // no window of it stays open
    const answer = await pausedAnswer();
    const { conversation, turn } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await waitForAnswerText(visit.page);
    await send(visit.page, "What is 6*7?");
    await send(visit.page, "What is 6*8?");
    await waiting(visit.page)
      .getByText(/Sends after this answer/)
      .waitFor();
    await waiting(visit.page).getByText("Queued", { exact: true }).waitFor();
    await waiting(visit.page).getByText("2 queued").waitFor();
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: What is 6*7?", "queued: What is 6*8?"]);
    await visit.close();
    expect((await account.read<{ state: string }>(`/chat/turns/${turn}`)).state).toBe("running");
    await answer.release();
    await expect
      .poll(() => states(account, conversation))
      .toEqual(Array(3).fill(["user complete", "assistant complete"]).flat());
    const all = await stored(account, conversation);
    expect([2, 4].map((at) => textOf(all[at]!))).toEqual(["What is 6*7?", "What is 6*8?"]);
    expect([3, 5].map((at) => /42|48/.exec(textOf(all[at]!))?.[0])).toEqual(["42", "48"]);
  });

  test("38 a queued message that another device has changed keeps the text here, names the other one, and is replaced on request", async () => {
    const account = await Account.register();
    const answer = await pausedAnswer();
    const { conversation } = await account.startTurn(answer.text);
    const path = `/conversations/${conversation}/follow-ups`;
    const made = await account.request("POST", path, { content: "Mention the moon." });
    const { follow_up_id, version } = (await made.json()) as { follow_up_id: string; version: number };
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waiting(page).getByRole("button", { name: "Edit" }).press("Enter");
    const editor = waiting(page).getByRole("textbox", { name: "Edit the queued message" });
    await expectFocus(editor);
    await editor.fill("Mention the stars.");
    await account.request("PATCH", `${path}/${follow_up_id}`, {
      state: "queued",
      content: "Mention the sun.",
      version,
    });
    await editor.press("Enter");
    const notice = waiting(page).getByRole("alert");
    await expect
      .poll(() => notice.innerText())
      .toMatch(/On another device it now says “.?Mention the sun\..?”\. Saving replaces that version\./u);
    expect(await page.getByText("You're seeing the latest").count()).toBe(0);
    expect(await editor.inputValue()).toBe("Mention the stars.");
    await expectAccessibleOnDesktopAndPhone(page, "a changed queued message");
    await editor.press("Enter");
    await editor.waitFor({ state: "detached" });
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: Mention the stars."]);
    await answer.release();
    await visit.close();
  });

  test("7 a long queued message is edited with its buttons in view, on a phone and on a desktop", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer();
    const { conversation } = await account.startTurn(answer.text);
    for (const text of ["One.", "Two.\n".repeat(60), "Three.", "Four.", "Five."])
      await enqueue(account, conversation, text);
    for (const viewport of [{ width: 320, height: 640 }, phone, { width: 1440, height: 900 }]) {
      const visit = await BrowserWindow.open(`/c/${conversation}`, account, { viewport });
      const { page } = visit;
      await waiting(page)
        .getByRole("button", { name: /^Edit: Two\./ })
        .press("Enter");
      await expectFocus(waiting(page).getByRole("textbox", { name: "Edit the queued message" }));
      const form = waiting(page).locator("form");
      const cut = () =>
        form.evaluate((one) => {
          const [inner, outer] = [one.getBoundingClientRect(), one.closest("ol")!.getBoundingClientRect()];
          return Math.max(outer.top - inner.top, inner.bottom - outer.bottom);
        });
      await expect.poll(cut, { message: "pixels of the editor out of view" }).toBeLessThan(1);
      await form.getByRole("button", { name: "Cancel" }).press("Enter");
      await visit.close();
    }
    await answer.release();
  });

  test("7 what is typed in the editor of a queued message is in the composer after a reload", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer();
    const { conversation } = await account.startTurn(answer.text);
    await enqueue(account, conversation, "One.");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waiting(page).getByRole("button", { name: "Edit: One." }).press("Enter");
    const editor = waiting(page).getByRole("textbox", { name: "Edit the queued message" });
    await expectFocus(editor); // the cursor is at the end from then on
    await editor.fill("One and two.");
    await page.reload();
    await expect.poll(() => composer(page).inputValue()).toBe("One and two.");
    expect(await queue(account, conversation)).toEqual(["queued: One."]);
    await answer.release();
    await visit.close();
  });

  test("7 stopping holds the queued messages, and every device shows their number", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    for (const text of ["One.", "Two."]) await enqueue(account, conversation, text);
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account);
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    for (const { page } of [laptop, mobile]) await waiting(page).getByText("2 queued").waitFor();
    await stop(laptop.page).press("Enter");
    for (const { page } of [laptop, mobile]) {
      await waitForAnswerEnd(page);
      await waiting(page).getByText("2 on hold").waitFor();
    }
    await expectFocus(composer(laptop.page));
    expect(await queue(account, conversation)).toEqual(["held: One.", "held: Two."]);
    expect(await states(account, conversation)).toEqual(["user complete", "assistant cancelled"]);
    await laptop.close();
    await mobile.close();
  });

  test("7 the command that stops and clears the queue shows how many messages it drops, and drops them", async () => {
    const account = await sharedAccount();
    const { conversation } = await account.startTurn((await pausedAnswer()).text);
    for (const text of ["One.", "Two."]) await enqueue(account, conversation, text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    await page.getByRole("button", { name: "More ways to stop" }).press("Enter");
    const all = page.getByRole("menuitem", { name: /^Stop and discard the queue/ });
    await all.getByText("Discards 2 queued messages").waitFor();
    await all.press("Enter");
    await waitForAnswerEnd(page);
    await waiting(page).waitFor({ state: "hidden" });
    await expectFocus(composer(page));
    expect(await queue(account, conversation)).toEqual(["cancelled: One.", "cancelled: Two."]);
    await visit.close();
  });
});

describe("tabs and networks", () => {
  test("9 a reloaded second tab stops the answer, shows “Stopping…” until the end and keeps the text", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer(20_000);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const second = await visit.tab(`/c/${conversation}`);
    await waitForAnswerText(visit.page);
    await second.reload();
    await waitForAnswerText(second);
    const requests = await intercept(second, "POST", "**/chat/steering");
    await composer(second).press("Escape");
    const stopping = second.getByRole("status").filter({ hasText: /^Stopping…$/ });
    await stopping.waitFor();
    await expect.poll(() => requests.length).toBeGreaterThan(0);
    // The service has not received the stop: the answer continues, and so does “Stopping…”.
    const before = (await lastAnswerText(second)).length;
    await answer.release();
    await expect.poll(async () => (await lastAnswerText(second)).length).toBeGreaterThan(before);
    expect(await stopping.isVisible()).toBe(true);
    expect(await stop(second).count()).toBe(0);
    await second.unrouteAll();
    // A request that was aborted in the meantime is retried.
    for (const route of requests) await route.continue().catch(() => {});
    for (const page of [visit.page, second]) {
      await messages(page).last().getByText(stopped).waitFor();
      await waitForAnswerEnd(page);
    }
    await stopping.waitFor({ state: "hidden" });
    const last = (await stored(account, conversation)).at(-1)!;
    expect(last.status).toBe("cancelled");
    const whole = await lastAnswerText(second);
    expect(whole.length).toBeGreaterThan(before);
    await expect.poll(() => lastAnswerText(visit.page)).toBe(whole);
    await visit.close();
  });

  test("12 when the tab with the connection is closed, the other one continues to the end without a gap", async () => {
    const account = await sharedAccount();
    const answer = await pausedAnswer(150);
    const { conversation } = await account.startTurn(answer.text);
    const visit = await BrowserWindow.open("/health", account);
    const { page, context } = visit;
    const streams: { page: Page; after: number }[] = [];
    context.on("request", (request) => {
      const after = /\/events\?after=(\d+)$/.exec(request.url());
      if (after !== null) streams.push({ page: request.frame().page(), after: Number(after[1]) });
    });
    const first = await visit.tab(`/c/${conversation}`);
    await waitForAnswerText(first);
    await page.goto(`${url}/c/${conversation}`);
    await waitForAnswerText(page);
    expect(streams.length).toBeGreaterThan(0);
    expect(
      streams.every((stream) => stream.page === first),
      "one tab has the connection",
    ).toBe(true);
    const seen = streams.length;
    await first.close();
    await expect.poll(() => streams.length).toBeGreaterThan(seen);
    expect(streams[seen]!.page).toBe(page);
    expect(streams[seen]!.after).toBeGreaterThan(0);
    await answer.release();
    await waitForAnswerEnd(page);
    expect(await states(account, conversation)).toEqual(["user complete", "assistant complete"]);
    const read = await lastAnswerText(page);
    await page.reload();
    await messages(page).last().waitFor();
    await expect.poll(() => lastAnswerText(page)).toBe(read);
    await visit.close();
  });

  test("11 a lost connection and an offline browser are reported only after a second, and until they are back", async () => {
    const account = await sharedAccount();
    const { conversation, turn } = await account.startTurn(endless);
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open("/health", account, { proxy: network.proxy });
    const { page } = visit;
    await page.clock.install();
    const open = page.waitForResponse((response) => isStream(response.request()));
    await page.goto(`${url}/c/${conversation}`);
    await open; // the text on the page may come from the stored messages
    await waitForAnswerText(page);
    const heard = await recordAnnouncements(page);
    await loseConnection(page, network, heard);
    await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    await waitForAnswerEnd(page);
    await goOffline(page, heard);
    await visit.close();
    await network.close();
  });
});

/** Loses the connection of a live answer for a moment, which is not reported, and for longer, which is. */
async function loseConnection(page: Page, network: FaultProxy, heard: () => Promise<Announcement[]>): Promise<void> {
  const banners = async () => (await heard()).filter(({ text }) => /Reconnecting|reach the server|offline/.test(text));
  const clock = await stopClock(page);

  let isBack = false;
  const reconnected = page.waitForResponse((response) => isStream(response.request())).then(() => (isBack = true));
  let broken = page.waitForEvent("requestfailed", { predicate: isStream });
  network.drop();
  await broken;
  await expect.poll(async () => (await clock.pass(10), isBack), { interval: 100 }).toBe(true);
  await reconnected;
  const before = (await lastAnswerText(page)).length;
  await expect
    .poll(async () => (await clock.pass(10), (await lastAnswerText(page)).length), { interval: 100 })
    .toBeGreaterThan(before);
  await clock.pass(3_000);
  expect(await banners(), "after a short loss").toEqual([]);

  broken = page.waitForEvent("requestfailed", { predicate: isStream });
  network.cut();
  await broken;
  await clock.pass(50);
  await clock.pass(600);
  expect(await banners(), "in the first second of a loss").toEqual([]);
  await clock.pass(600);
  const banner = page.getByText(/^(Reconnecting\.|Can't reach the server\.)/);
  await banner.waitFor();
  network.restore();
  await clock.resume();
  await banner.waitFor({ state: "hidden" });
  const length = (await lastAnswerText(page)).length;
  await expect.poll(async () => (await lastAnswerText(page)).length).toBeGreaterThan(length);
}

/** Takes the browser offline for a moment, which is not reported, and for longer, which is. */
async function goOffline(page: Page, heard: () => Promise<Announcement[]>): Promise<void> {
  const setOnline = async (is: boolean) => {
    await page.context().setOffline(!is);
    await expect.poll(() => page.evaluate(() => navigator.onLine)).toBe(is);
  };
  const clock = await stopClock(page);
  await clock.pass(3_000); // the end of the answer is announced
  const before = (await heard()).length;
  await setOnline(false);
  await clock.pass(600);
  await setOnline(true);
  await clock.pass(3_000);
  expect((await heard()).slice(before)).toEqual([]);
  await setOnline(false);
  await clock.pass(100);
  await clock.pass(1_100);
  const banner = page.getByText("You're offline. Messages are saved here and sent when you're back.");
  await banner.waitFor();
  await setOnline(true);
  await clock.resume();
  await banner.waitFor({ state: "hidden" });
}

const isStream = (request: { url(): string }) => /\/events\?after=\d+$/.test(request.url());

/** Stops the installed clock of a page: until resume is called, its time advances only by pass. */
async function stopClock(page: Page): Promise<{ pass(milliseconds: number): Promise<void>; resume(): Promise<void> }> {
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
  return { pass: (milliseconds) => page.clock.runFor(milliseconds), resume: () => page.clock.resume() };
}

describe("changes before they are confirmed", () => {
  test("46 a new title is shown at once, and reverted with a notice when the service refuses it", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const title = (text: string) => sidebar(page).getByRole("link", { name: text, exact: true });
    const failure = page.getByRole("alert").filter({ hasText: "Couldn't save the new title." });
    for (const [status, code] of [
      [503, "unavailable"],
      [422, "invalid"],
    ] as const) {
      await title("Tides").waitFor();
      const requests = await intercept(page, "PUT", `**/conversations/${conversation}/title`);
      await title("Tides").focus();
      await page.keyboard.press("F2");
      await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Moons");
      await page.keyboard.press("Enter");
      await title("Moons").waitFor();
      await page.getByRole("heading", { level: 1, name: "Moons" }).waitFor();
      await expect.poll(() => requests.length).toBe(1);
      await requests[0]!.fulfill(refusal(status, code));
      await title("Tides").waitFor();
      await page.getByRole("heading", { level: 1, name: "Tides" }).waitFor();
      await failure.waitFor();
      await page.unrouteAll();
      if (status === 503) await failure.getByRole("button", { name: "Close" }).click();
    }
    await failure.getByRole("button", { name: "Try again" }).press("Enter");
    await title("Moons").waitFor();
    await expect
      .poll(async () => (await account.read<{ title: string }>(`/conversations/${conversation}`)).title)
      .toBe("Moons");
    await visit.close();
  });

  test("46 a conversation is removed only after the service has deleted it", async () => {
    const account = await sharedAccount();
    const opened = await account.chat("Hello!");
    const conversation = await account.chat("What is 6*7?");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Sums" });
    const visit = await BrowserWindow.open(`/c/${opened}`, account);
    const { page } = visit;
    const row = sidebar(page).getByRole("link", { name: /^Sums/ });
    const requests = await intercept(page, "DELETE", `**/conversations/${conversation}`);
    await row.focus();
    await page.keyboard.press("Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
    await row.getByText("deleting…").waitFor();
    expect(requests.length, "requests while it can be undone").toBe(0);
    // Closing the toast with "Undo" does not undo the deletion.
    await page
      .getByRole("status")
      .filter({ hasText: "Deleting" })
      .getByRole("button", { name: "Close" })
      .press("Enter");
    await expect.poll(() => requests.length).toBe(1);
    await row.getByText("deleting…").waitFor();
    await requests[0]!.fulfill(refusal(503, "unavailable"));
    const failure = page.getByRole("alert").filter({ hasText: "Couldn't delete “Sums”." });
    await failure.waitFor();
    await row.getByText("deleting…").waitFor({ state: "hidden" });
    await failure.getByRole("button", { name: "Try again" }).press("Enter");
    await expect.poll(() => requests.length).toBe(2);
    await row.getByText("deleting…").waitFor();
    await requests[1]!.continue();
    await row.waitFor({ state: "hidden" });
    expect(
      await account.read(`/conversations/${conversation}`).then(
        () => "there",
        () => "gone",
      ),
    ).toBe("gone");
    await visit.close();
  });

  test("46 a refused message is shown as not sent, also after a reload; a retry sends it once", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const requests = await intercept(page, "POST", `${url}/chat`);
    await send(page, "What is 6*7?");
    await messages(page).nth(2).getByText("What is 6*7?").waitFor();
    await expect.poll(() => requests.length).toBe(1);
    await requests[0]!.fulfill(refusal(429, "too_many_live_turns"));
    const why = messages(page).nth(2).getByRole("alert").filter({ hasText: "Not sent: too many answers are running." });
    await why.waitFor();
    await page.reload();
    await why.waitFor();
    expect((await stored(account, conversation)).length).toBe(2);
    expect(requests.length).toBe(1);
    await page.unrouteAll();
    await messages(page).nth(2).getByRole("button", { name: "Try again" }).press("Enter");
    await expect
      .poll(() => states(account, conversation))
      .toEqual(Array(2).fill(["user complete", "assistant complete"]).flat());
    await why.waitFor({ state: "hidden" });
    expect(await messages(page).count()).toBe(4);
    await visit.close();
  });
});
