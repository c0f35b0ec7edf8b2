// While an answer is written: adding to it, taking back, queueing, stopping, from whatever tab and device and over whatever
// network. What is shown is what the service has, and never more.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { composer, endless, expectFocus, finished, held, heldText, intercept, listen, messages, queue, refusal, send, sidebar, speaking, stop, stored, textOf, waiting } from "./room";
import { Account, phone, url, Visit, withBrowser } from "./site";
import { Wire } from "./wire";

withBrowser();

const stopped = "You stopped this answer. What was written is kept.";

/** A message for later, from another device. */
async function enqueue(account: Account, conversation: string, text: string): Promise<void> {
  await account.ask("POST", "/chat", { conversation_id: conversation, input: [{ type: "text", text }], if_busy: "queue" });
}

async function states(account: Account, conversation: string): Promise<string[]> {
  return (await stored(account, conversation)).map(({ role, status }) => `${role} ${status}`);
}

describe("steering", () => {
  test("6 interrupting keeps what was said, marked as cut, and the answer goes on with the message", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await speaking(page);
    await composer(page).fill("Only one sentence, please.");
    await page.getByRole("button", { name: "More ways to send" }).press("Enter");
    await page.getByRole("menuitem", { name: /^Interrupt and send/ }).press("Enter");
    const answer = messages(page).nth(1);
    await answer.getByText("It was cut off here.").waitFor();
    await answer.getByText("Only one sentence, please.", { exact: true }).waitFor();
    await answer.getByText(/^Taking into account: Only one sentence, please\./).waitFor();
    await expectFocus(composer(page));
    const shown = await answer.innerText();
    const places = ["It was cut off here.", "You added", "Taking into account"].map((words) => shown.indexOf(words));
    expect(places[0]).toBeGreaterThan(0);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    await composer(page).press("Escape");
    await finished(page);
    const { parts } = (await stored(account, conversation))[1]!;
    expect(parts.map(({ type, kind, truncated }) => [kind ?? type, truncated ?? false])).toEqual([["text", true], ["steering", false], ["text", true]]);
    expect(parts[0]!.text).toMatch(/^The ruddy turnstone/);
    await visit.close();
  });

  test("8 what was put into the queue is listed once, though the conversation was read only in part since", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await speaking(page);
    const asked = await intercept(page, "GET", /\/messages/);
    await send(page, "What do they eat?");
    await waiting(page).getByRole("button", { name: "Back into the composer" }).waitFor();
    await expect.poll(() => asked.length).toBe(1);
    expect(await waiting(page).getByRole("listitem").allInnerTexts()).toEqual([expect.stringMatching(/^What do they eat\?/)]);
    await asked[0]!.continue();
    await composer(page).press("Escape");
    await finished(page);
    await visit.close();
  });

  test("8 an input that is taken back is not applied, and both devices are told how it stands", async () => {
    const account = await Account.register();
    const { conversation, turn } = await account.begin((await held()).text);
    const desk = await Visit.open(`/c/${conversation}`, account);
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await speaking(desk.page);
    await speaking(pocket.page);
    await send(desk.page, "Mention the moon.", "ControlOrMeta+Enter");
    for (const { page } of [desk, pocket]) await waiting(page).getByText("Steering: accepted, applied at the next step").waitFor();
    await waiting(pocket.page).getByText("Mention the moon.").waitFor();
    await waiting(desk.page).getByRole("button", { name: "Withdraw" }).press("Enter");
    await expectFocus(composer(desk.page));
    for (const { page } of [desk, pocket]) {
      await waiting(page).getByText("Steering: withdrawn, not applied").waitFor();
      expect(await waiting(page).getByRole("button", { name: "Withdraw" }).count()).toBe(0);
    }
    // Another one is applied, so that there was a step that could have taken the first.
    await send(desk.page, "Mention the sun.", "ControlOrMeta+Enter");
    await waiting(pocket.page).getByText("Mention the sun.").waitFor();
    await account.ask("POST", "/chat/steering", { type: "input", turn_id: turn, client_steering_id: "a", delivery: "interrupt", input: [{ type: "text", text: "Mention a star." }] });
    await messages(desk.page).nth(1).getByText(/^Taking into account: Mention the sun\.; Mention a star\./).waitFor();
    await composer(desk.page).press("Escape");
    for (const { page } of [desk, pocket]) await finished(page);
    const text = textOf((await stored(account, conversation))[1]!);
    expect(text).toMatch(/Taking into account: .*sun.*star/s);
    expect(text).not.toContain("moon");
    expect(await queue(account, conversation)).toEqual([]);
    await desk.close();
    await pocket.close();
  });

  test("8 an input that the end of the answer returns is held with its text, and can be taken back and sent anew", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    const desk = await Visit.open(`/c/${conversation}`, account);
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    await speaking(desk.page);
    await speaking(pocket.page);
    await send(desk.page, "What do they eat?", "ControlOrMeta+Enter");
    await waiting(desk.page).getByText("Steering: accepted, applied at the next step").waitFor();
    await composer(desk.page).press("Escape");
    for (const { page } of [desk, pocket]) {
      await finished(page);
      await waiting(page).getByRole("listitem").filter({ hasText: "What do they eat?" }).getByText(/^Held · The answer before it did not finish/).waitFor();
    }
    expect(await queue(account, conversation)).toEqual(["held: What do they eat?"]);
    await waiting(desk.page).getByRole("button", { name: "Back into the composer" }).press("Enter");
    await expect.poll(() => composer(desk.page).inputValue()).toBe("What do they eat?");
    await expectFocus(composer(desk.page));
    expect(await queue(account, conversation)).toEqual(["cancelled: What do they eat?"]);
    await composer(desk.page).press("Enter");
    await expect.poll(() => states(account, conversation)).toEqual(["user complete", "assistant cancelled", "user complete", "assistant complete"]);
    expect(textOf((await stored(account, conversation))[2]!)).toBe("What do they eat?");
    await messages(desk.page).last().getByText(/You wrote: “What do they eat\?”/).waitFor();
    await desk.close();
    await pocket.close();
  });
});

describe("the queue", () => {
  test("7 what is queued runs one after the other, with no browser open", async () => {
    const account = await Account.register();
    const answer = await held();
    const { conversation, turn } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    await speaking(visit.page);
    await send(visit.page, "What is 6*7?");
    await send(visit.page, "What is 6*8?");
    await waiting(visit.page).getByText(/Next, when this answer is done/).waitFor();
    await waiting(visit.page).getByText(/After the one before/).waitFor();
    await waiting(visit.page).getByText("2 messages wait").waitFor();
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: What is 6*7?", "queued: What is 6*8?"]);
    await visit.close();
    expect((await account.read<{ state: string }>(`/chat/turns/${turn}`)).state).toBe("running");
    await answer.letGo();
    await expect.poll(() => states(account, conversation), { timeout: 50_000 }).toEqual(Array(3).fill(["user complete", "assistant complete"]).flat());
    const all = await stored(account, conversation);
    expect([2, 4].map((at) => textOf(all[at]!))).toEqual(["What is 6*7?", "What is 6*8?"]);
    expect([3, 5].map((at) => /42|48/.exec(textOf(all[at]!))?.[0])).toEqual(["42", "48"]);
  });

  test("7 stopping holds what is queued, and every device says how much that is", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    for (const text of ["One.", "Two."]) await enqueue(account, conversation, text);
    const desk = await Visit.open(`/c/${conversation}`, account);
    const pocket = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    for (const { page } of [desk, pocket]) await waiting(page).getByText("2 messages wait").waitFor();
    await stop(desk.page).press("Enter");
    for (const { page } of [desk, pocket]) {
      await finished(page);
      await waiting(page).getByText("2 messages are held").waitFor();
    }
    await expectFocus(composer(desk.page));
    expect(await queue(account, conversation)).toEqual(["held: One.", "held: Two."]);
    expect(await states(account, conversation)).toEqual(["user complete", "assistant cancelled"]);
    await desk.close();
    await pocket.close();
  });

  test("7 stopping and clearing says how many are dropped before it is chosen, and drops them", async () => {
    const account = await Account.register();
    const { conversation } = await account.begin((await held()).text);
    for (const text of ["One.", "Two."]) await enqueue(account, conversation, text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await speaking(page);
    await page.getByRole("button", { name: "More ways to stop" }).press("Enter");
    const all = page.getByRole("menuitem", { name: /^Stop and clear the queue/ });
    await all.getByText("2 queued messages are dropped").waitFor();
    await all.press("Enter");
    await finished(page);
    await waiting(page).waitFor({ state: "hidden" });
    await expectFocus(composer(page));
    expect(await queue(account, conversation)).toEqual(["cancelled: One.", "cancelled: Two."]);
    await visit.close();
  });
});

describe("tabs and networks", () => {
  test("9 another tab stops the answer after a reload: “Stopping…” stands until the end is told, in both what was said is kept", async () => {
    const account = await Account.register();
    const answer = await held(20_000);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const second = await visit.tab(`/c/${conversation}`);
    await speaking(visit.page);
    await second.reload();
    await speaking(second);
    const asked = await intercept(second, "POST", "**/chat/steering");
    await composer(second).press("Escape");
    const stopping = second.getByRole("status").filter({ hasText: /^Stopping…$/ });
    await stopping.waitFor();
    await expect.poll(() => asked.length).toBeGreaterThan(0);
    // Nobody has heard of it yet: the answer goes on, and so does the waiting.
    const before = (await heldText(second)).length;
    await answer.letGo();
    await expect.poll(async () => (await heldText(second)).length).toBeGreaterThan(before);
    expect(await stopping.isVisible()).toBe(true);
    expect(await stop(second).count()).toBe(0);
    await second.unrouteAll();
    for (const route of asked) await route.continue().catch(() => {}); // one that was given up meanwhile is asked again
    for (const page of [visit.page, second]) {
      await messages(page).last().getByText(stopped).waitFor();
      await finished(page);
    }
    await stopping.waitFor({ state: "hidden" });
    const last = (await stored(account, conversation)).at(-1)!;
    expect(last.status).toBe("cancelled");
    const whole = await heldText(second);
    expect(whole.length).toBeGreaterThan(before);
    await expect.poll(() => heldText(visit.page)).toBe(whole);
    await visit.close();
  });

  test("12 the tab that holds the connection is closed: the other one goes on to the end, without a gap", async () => {
    const account = await Account.register();
    const answer = await held(150);
    const { conversation } = await account.begin(answer.text);
    const visit = await Visit.open("/", account);
    const streams: { page: Page; after: number }[] = [];
    visit.context.on("request", (request) => {
      const after = /\/events\?after=(\d+)$/.exec(request.url());
      if (after !== null) streams.push({ page: request.frame().page(), after: Number(after[1]) });
    });
    await visit.page.goto(`${url}/c/${conversation}`);
    await speaking(visit.page);
    const second = await visit.tab(`/c/${conversation}`);
    await speaking(second);
    expect(streams.length).toBeGreaterThan(0);
    expect(streams.every(({ page }) => page === visit.page), "one tab holds the connection").toBe(true);
    const seen = streams.length;
    await visit.page.close();
    await expect.poll(() => streams.length).toBeGreaterThan(seen);
    expect(streams[seen]!.page).toBe(second);
    expect(streams[seen]!.after).toBeGreaterThan(0);
    await answer.letGo();
    await finished(second);
    expect(await states(account, conversation)).toEqual(["user complete", "assistant complete"]);
    const later = await Visit.open(`/c/${conversation}`, account);
    await messages(later.page).last().waitFor();
    const read = await heldText(second);
    await expect.poll(() => heldText(later.page)).toBe(read);
    await visit.close();
    await later.close();
  });

  test("11 a loss of less than a second says nothing; a longer one is told, and goes when the connection is back", async () => {
    const account = await Account.register();
    const { conversation, turn } = await account.begin(endless);
    const wire = await Wire.lay();
    const visit = await Visit.open(`/c/${conversation}`, account, { proxy: wire.proxy });
    const { page } = visit;
    await page.clock.install();
    const open = page.waitForResponse((answer) => isStream(answer.request()));
    await page.reload();
    await open; // what is shown may be what was stored
    await speaking(page);
    const heard = await listen(page);
    const banners = async () => (await heard()).filter(({ text }) => /Reconnecting|offline/.test(text));
    const time = await stopClock(page);

    let back = false;
    const again = page.waitForResponse((answer) => isStream(answer.request())).then(() => (back = true));
    let broken = page.waitForEvent("requestfailed", { predicate: isStream });
    wire.drop();
    await broken;
    await expect.poll(async () => (await time.pass(10), back), { interval: 100 }).toBe(true);
    await again;
    const before = (await heldText(page)).length;
    await expect.poll(async () => (await time.pass(10), (await heldText(page)).length), { interval: 100 }).toBeGreaterThan(before);
    await time.pass(3_000);
    expect(await banners(), "of a short loss").toEqual([]);

    broken = page.waitForEvent("requestfailed", { predicate: isStream });
    wire.cut();
    await broken;
    await time.pass(50);
    await time.pass(600);
    expect(await banners(), "of a loss that is not a second old").toEqual([]);
    await time.pass(600);
    const banner = page.getByText("Reconnecting. The answer continues on the server.");
    await banner.waitFor();
    wire.mend();
    await time.goOn();
    await banner.waitFor({ state: "hidden", timeout: 30_000 });
    const held = (await heldText(page)).length;
    await expect.poll(async () => (await heldText(page)).length).toBeGreaterThan(held);
    await account.ask("POST", "/chat/steering", { type: "cancel", turn_id: turn });
    await finished(page);
    await visit.close();
    await wire.close();
  });

  test("11 a network that is away for less than a second says nothing, either", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page, context } = visit;
    await page.clock.install();
    await page.reload();
    await messages(page).last().waitFor();
    const heard = await listen(page);
    const online = (is: boolean) => expect.poll(() => page.evaluate(() => navigator.onLine)).toBe(is);
    const time = await stopClock(page);
    await context.setOffline(true);
    await online(false);
    await time.pass(600);
    await context.setOffline(false);
    await online(true);
    await time.pass(3_000);
    expect(await heard()).toEqual([]);
    await context.setOffline(true);
    await online(false);
    await time.pass(100);
    await time.pass(1_100);
    const banner = page.getByText("You are offline. What you send is saved on this device and goes out when you are back.");
    await banner.waitFor();
    await context.setOffline(false);
    await time.goOn();
    await banner.waitFor({ state: "hidden" });
    await visit.close();
  });
});

const isStream = (request: { url(): string }) => /\/events\?after=\d+$/.test(request.url());

/** From now on the time of a page with a clock of its own passes only as it is told to. */
async function stopClock(page: Page): Promise<{ pass(milliseconds: number): Promise<void>; goOn(): Promise<void> }> {
  await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
  return { pass: (milliseconds) => page.clock.runFor(milliseconds), goOn: () => page.clock.resume() };
}

describe("what is shown before it is known", () => {
  test("46 a new title is shown at once, and taken back in words when the service refuses it", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    const title = (text: string) => sidebar(page).getByRole("link", { name: text, exact: true });
    const failure = page.getByRole("alert").filter({ hasText: "The new title was not saved." });
    for (const [status, code] of [[503, "unavailable"], [422, "invalid"]] as const) {
      await title("Tides").waitFor();
      const asked = await intercept(page, "PUT", `**/conversations/${conversation}/title`);
      await title("Tides").focus();
      await page.keyboard.press("F2");
      await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Moons");
      await page.keyboard.press("Enter");
      await title("Moons").waitFor();
      await page.getByRole("heading", { level: 1, name: "Moons" }).waitFor();
      await expect.poll(() => asked.length).toBe(1);
      await asked[0]!.fulfill(refusal(status, code));
      await title("Tides").waitFor();
      await page.getByRole("heading", { level: 1, name: "Tides" }).waitFor();
      await failure.waitFor();
      await page.unrouteAll();
      if (status === 503) await failure.getByRole("button", { name: "Close" }).click();
    }
    await failure.getByRole("button", { name: "Try again" }).press("Enter");
    await title("Moons").waitFor();
    await expect.poll(async () => (await account.read<{ title: string }>(`/conversations/${conversation}`)).title).toBe("Moons");
    await visit.close();
  });

  test("46 nothing is shown as deleted before the service has done it", async () => {
    const account = await Account.register();
    const kept = await account.chat("Hello!");
    const conversation = await account.chat("What is 6*7?");
    await account.ask("PUT", `/conversations/${conversation}/title`, { title: "Sums" });
    const visit = await Visit.open(`/c/${kept}`, account);
    const { page } = visit;
    const row = sidebar(page).getByRole("link", { name: /^Sums/ });
    const asked = await intercept(page, "DELETE", `**/conversations/${conversation}`);
    await row.focus();
    await page.keyboard.press("Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).press("Enter");
    await row.getByText("deleting…").waitFor();
    expect(asked.length, "asked while it can be undone").toBe(0);
    // Putting the offer to undo away is no undoing.
    await page.getByRole("status").filter({ hasText: "is about to be deleted" }).getByRole("button", { name: "Close" }).press("Enter");
    await expect.poll(() => asked.length).toBe(1);
    await row.getByText("deleting…").waitFor();
    await asked[0]!.fulfill(refusal(503, "unavailable"));
    const failure = page.getByRole("alert").filter({ hasText: "“Sums” was not deleted." });
    await failure.waitFor();
    await row.getByText("deleting…").waitFor({ state: "hidden" });
    await failure.getByRole("button", { name: "Try again" }).press("Enter");
    await expect.poll(() => asked.length).toBe(2);
    await row.getByText("deleting…").waitFor();
    await asked[1]!.continue();
    await row.waitFor({ state: "hidden" });
    expect(await account.read(`/conversations/${conversation}`).then(() => "there", () => "gone")).toBe("gone");
    await visit.close();
  });

  test("46 what is not taken is shown as not sent, also after a reload, and sent once when it is tried again", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    const asked = await intercept(page, "POST", `${url}/chat`);
    await send(page, "What is 6*7?");
    await messages(page).nth(2).getByText("What is 6*7?").waitFor();
    await expect.poll(() => asked.length).toBe(1);
    await asked[0]!.fulfill(refusal(429, "too_many_live_turns"));
    const why = messages(page).nth(2).getByRole("alert").filter({ hasText: "Not sent: as many answers are being written as your account may have at once." });
    await why.waitFor();
    await page.reload();
    await why.waitFor();
    expect((await stored(account, conversation)).length).toBe(2);
    expect(asked.length).toBe(1);
    await page.unrouteAll();
    await messages(page).nth(2).getByRole("button", { name: "Try again" }).press("Enter");
    await expect.poll(() => states(account, conversation)).toEqual(Array(2).fill(["user complete", "assistant complete"]).flat());
    await why.waitFor({ state: "hidden" });
    expect(await messages(page).count()).toBe(4);
    await visit.close();
  });
});
