// What the service refuses, as a person meets it: what is said is true, the text is never lost, and what was decided is
// done once.
import type { Locator, Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothLooks } from "./axe";
import { composer, endless, expectFocus, messages, refusal, stop, stored } from "./room";
import { Account, phone, url, Visit, withBrowser } from "./site";

withBrowser();

const send = (page: Page) => page.getByRole("button", { name: "Send", exact: true });
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).press("Enter");

async function said(account: Account, conversation: string): Promise<(string | undefined)[]> {
  return (await stored(account, conversation)).filter((message) => message.role === "user").map((message) => message.parts[0]?.text);
}

interface Kept {
  draft: { content: string };
  follow_ups: { content: string; state: string }[];
}

const kept = (account: Account, conversation: string): Promise<Kept> => account.read<Kept>(`/conversations/${conversation}`);
const draftOf = async (account: Account, conversation: string) => (await kept(account, conversation)).draft.content;

/** An account in a conversation with one answer, and who looks at it. */
async function somebody(): Promise<{ account: Account; conversation: string; visit: Visit; page: Page }> {
  const account = await Account.register();
  const conversation = await account.chat("Hello!");
  const visit = await Visit.open(`/c/${conversation}`, account);
  await messages(visit.page).nth(1).waitFor();
  // The answer to that it was read tells how the conversation stands, too.
  await expect.poll(async () => (await account.read<{ unread: boolean }>(`/conversations/${conversation}`)).unread).toBe(false);
  return { account, conversation, visit, page: visit.page };
}

/** The page does not hear how its conversation stands until the returned function is called. */
async function unheard(page: Page, conversation: string): Promise<() => void> {
  let hear = () => {};
  const heard = new Promise<void>((resolve) => (hear = resolve));
  await page.route(`${url}/conversations/${conversation}`, async (route) => {
    await heard;
    await route.continue();
  });
  return hear;
}

async function cancel(account: Account, turn: string): Promise<void> {
  await account.ask("POST", "/chat/steering", { type: "cancel", turn_id: turn });
  await expect.poll(async () => (await account.read<{ state: string }>(`/chat/turns/${turn}`)).state).toBe("cancelled");
}

/** What a control is described by, for who asks a screen reader. */
async function described(control: Locator): Promise<string> {
  return control.evaluate((element) => (element.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" "));
}

describe("changed in two places", () => {
  test("38 a draft: both versions are shown by name, and the chosen one stands on both devices", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const train = await Visit.open(`/c/${conversation}`, account, { viewport: phone });
    const desk = await Visit.open(`/c/${conversation}`, account);
    await messages(train.page).nth(1).waitFor();
    await messages(desk.page).nth(1).waitFor();
    const clash = train.page.getByRole("region", { name: "This draft was changed on another device" });
    const here = train.page.getByText(/This draft is on this device only/);
    const apart = async (onTheTrain: string, atTheDesk: string) => {
      await train.context.setOffline(true);
      await composer(train.page).fill(onTheTrain);
      await here.waitFor();
      await composer(desk.page).fill(atTheDesk);
      await expect.poll(() => draftOf(account, conversation)).toBe(atTheDesk);
      await train.context.setOffline(false);
      await clash.getByRole("alert").getByText("Both are kept until you choose.").waitFor();
      await clash.getByText(atTheDesk, { exact: true }).waitFor();
      await clash.getByText(onTheTrain, { exact: true }).waitFor();
      expect(await composer(train.page).inputValue()).toBe(onTheTrain);
      expect(await draftOf(account, conversation)).toBe(atTheDesk);
    };
    const settled = async (text: string) => {
      await clash.waitFor({ state: "hidden" });
      await here.waitFor({ state: "hidden" });
      await expectFocus(composer(train.page));
      expect(await composer(train.page).inputValue()).toBe(text);
      await expect.poll(() => composer(desk.page).inputValue(), { timeout: 30_000 }).toBe(text);
      expect(await draftOf(account, conversation)).toBe(text);
    };

    await apart("Seen from the train", "Seen from the desk");
    await expectAccessibleInBothLooks(train.page, "two versions of a draft");
    await clash.getByRole("button", { name: "Take the other" }).press("Enter");
    await settled("Seen from the desk");

    await apart("The train is right", "The desk is right");
    await clash.getByRole("button", { name: "Keep this one" }).press("Enter");
    await expect.poll(() => draftOf(account, conversation)).toBe("The train is right");
    await settled("The train is right");
    await train.close();
    await desk.close();
  });

  test("38 a setting: both values are shown, either may be kept, and what does not contradict goes together", async () => {
    const account = await Account.register();
    const visit = await Visit.open("/settings", account);
    const { page } = visit;
    const dialog = page.getByRole("dialog", { name: "Changed in two places" });
    const choice = (name: RegExp) => page.getByRole("radio", { name });
    const settings = () => account.read<Record<string, unknown>>("/account/settings");
    const elsewhere = async (change: object) => {
      const { version: _, ...now } = await settings();
      await account.ask("PUT", "/account/settings", { ...now, ...change });
    };
    const busy = async () => (await settings())["busy_action"];

    await choice(/^Queue it/).waitFor();
    await elsewhere({ busy_action: "interrupt" });
    await choice(/^Steer the answer/).press("Space");
    await dialog.getByText("Here: Steer the answer").waitFor();
    await dialog.getByText("On the other device: Interrupt and send").waitFor();
    await expectAccessibleInBothLooks(page, "two values of a setting");
    await dialog.getByRole("button", { name: "Keep the other" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => choice(/^Interrupt and send/).isChecked()).toBe(true);
    expect(await busy()).toBe("interrupt");

    await elsewhere({ busy_action: "queue" });
    await choice(/^Steer the answer/).press("Space");
    await dialog.getByText("On the other device: Queue it").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => choice(/^Queue it/).isChecked()).toBe(true);
    expect(await busy()).toBe("queue");
    await expectFocus(choice(/^Steer the answer/));

    await elsewhere({ busy_action: "interrupt" });
    await choice(/^Steer the answer/).press("Space");
    await dialog.getByRole("button", { name: "Use this one" }).press("Enter");
    await expect.poll(busy).toBe("steer");
    await expect.poll(() => choice(/^Steer the answer/).isChecked()).toBe(true);

    await elsewhere({ send_key: "mod_enter" });
    await choice(/^Dark$/).press("Space");
    await expect.poll(settings).toMatchObject({ theme: "dark", send_key: "mod_enter", busy_action: "steer" });
    await expect.poll(() => choice(/^Ctrl\+Enter/).isChecked()).toBe(true);
    expect(await dialog.count()).toBe(0);
    await visit.close();
  });

  test("38 a message on top of one that was not seen yet is asked about, and sent once all the same", async () => {
    const { account, conversation, visit, page } = await somebody();
    const hear = await unheard(page, conversation);
    await account.chat("From another device.", { conversation_id: conversation });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText(/this conversation has gone on elsewhere since you wrote this/).waitFor();
    hear();
    await page.getByText("From another device.").first().waitFor();
    expect(await said(account, conversation)).toEqual(["Hello!", "From another device."]);
    await expectAccessibleInBothLooks(page, "a conversation that has gone on");
    await press(page, "Send all the same");
    await page.getByText(/\b42\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await said(account, conversation)).toEqual(["Hello!", "From another device.", "What is 6*7?"]);
    await expectFocus(composer(page));
    await visit.close();
  });
});

describe("an answer that nobody here knew of", () => {
  /** A message that was refused because another device had begun something. */
  async function refused(text: string) {
    const one = await somebody();
    const { account, conversation, page } = one;
    const hear = await unheard(page, conversation);
    const { turn } = await account.begin(endless, { conversation_id: conversation });
    await composer(page).fill(text);
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText(/another answer is being written in this conversation/).waitFor();
    hear();
    await stop(page).waitFor();
    return { ...one, turn };
  }

  test("38 the message is queued instead", async () => {
    const { account, conversation, visit, page, turn } = await refused("And then?");
    await expectAccessibleInBothLooks(page, "a message that another answer keeps from being sent");
    await press(page, "Queue instead");
    await page.getByText("Next, when this answer is done").waitFor();
    expect((await kept(account, conversation)).follow_ups).toMatchObject([{ content: "And then?", state: "queued" }]);
    await expect.poll(() => page.getByRole("alert").getByText(/Not sent/).count()).toBe(0);
    await expectFocus(composer(page));
    await cancel(account, turn);
    expect(await said(account, conversation)).toEqual(["Hello!", endless]);
    await visit.close();
  });

  test("38 or it steers that answer, of which nothing but the refusal has told", async () => {
    const { account, conversation, visit, page } = await somebody();
    const hear = await unheard(page, conversation);
    const { turn } = await account.begin(endless, { conversation_id: conversation });
    await composer(page).fill("Shorter, please.");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText(/another answer is being written in this conversation/).waitFor();
    const answered = page.waitForResponse((response) => new URL(response.url()).pathname === "/chat/steering");
    await press(page, "Steer instead");
    const steering = await answered;
    expect([steering.status(), (steering.request().postDataJSON() as { turn_id: string }).turn_id]).toEqual([202, turn]);
    hear();
    await page.getByText("Steering: accepted, applied at the next step").waitFor();
    await cancel(account, turn);
    await expect.poll(async () => (await kept(account, conversation)).follow_ups).toMatchObject([{ content: "Shorter, please.", state: "held" }]);
    expect(await said(account, conversation)).toEqual(["Hello!", endless]);
    await visit.close();
  });

  test("38 or it comes back into the field", async () => {
    const { account, conversation, visit, page, turn } = await refused("A thought");
    await press(page, "Back into the composer");
    await expect.poll(() => composer(page).inputValue()).toBe("A thought");
    await expectFocus(composer(page));
    await expect.poll(() => draftOf(account, conversation)).toBe("A thought");
    await cancel(account, turn);
    expect(await said(account, conversation)).toEqual(["Hello!", endless]);
    expect((await kept(account, conversation)).follow_ups).toEqual([]);
    await visit.close();
  });

  test("38 queued once that answer has ended, it is sent, whatever came in between", async () => {
    const { account, conversation, visit, page, turn } = await refused("What is 6*7?");
    await cancel(account, turn);
    await stop(page).waitFor({ state: "hidden" });
    await press(page, "Queue instead");
    await page.getByText(/\b42\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await said(account, conversation)).toEqual(["Hello!", endless, "What is 6*7?"]);
    expect((await kept(account, conversation)).follow_ups).toEqual([]);
    await visit.close();
  });

  test("38 another version of a message waits, and is tried again by hand", async () => {
    const { account, conversation, visit, page } = await somebody();
    const hear = await unheard(page, conversation);
    const { turn } = await account.begin(endless, { conversation_id: conversation });
    await composer(page).press("ArrowUp");
    const editor = page.getByRole("textbox", { name: "Edit your message" });
    await editor.fill("What is 6*8?");
    await editor.press("Enter");
    await page.getByRole("alert").getByText(/another answer is being written in this conversation/).waitFor();
    hear();
    await stop(page).waitFor();
    await cancel(account, turn);
    await stop(page).waitFor({ state: "hidden" });
    await messages(page).last().getByRole("button", { name: "Try again" }).press("Enter");
    await page.getByText(/\b48\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect((await stored(account, conversation)).map((message) => message.sibling_count)).toEqual([2, 1]);
    expect(await said(account, conversation)).toEqual(["What is 6*8?"]);
    await visit.close();
  });

  test("38 and 8 steering that came too late is sent as the next message instead, once", async () => {
    const account = await Account.register();
    const { conversation, turn } = await account.begin(endless);
    const visit = await Visit.open(`/c/${conversation}`, account);
    const { page } = visit;
    await stop(page).waitFor();
    // The answer ends while the input is on its way.
    await page.route(`${url}/chat/steering`, async (route) => {
      await cancel(account, turn);
      await route.continue();
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("ControlOrMeta+Enter");
    await page.getByRole("alert").getByText("Not sent: the answer takes no more steering.").waitFor();
    expect(await said(account, conversation)).toEqual([endless]);
    await stop(page).waitFor({ state: "hidden" });
    await expectAccessibleInBothLooks(page, "steering that came too late");
    await press(page, "Queue instead");
    await page.getByText(/\b42\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await said(account, conversation)).toEqual([endless, "What is 6*7?"]);
    expect((await kept(account, conversation)).follow_ups).toEqual([]);
    await expect.poll(() => page.getByRole("alert").getByText(/Not sent/).count()).toBe(0);
    await visit.close();
  });
});

describe("over a limit", () => {
  test("37 sending is off and says why; what is to be sent by itself is sent once, and not before", async () => {
    const { account, conversation, visit, page } = await somebody();
    const wait = 600;
    let asked = 0;
    await page.clock.install();
    await page.reload();
    await messages(page).nth(1).waitFor();
    await page.route(`${url}/chat`, (route) => {
      return ++asked > 1 ? route.continue() : route.fulfill(refusal(429, "rate_limited", "Too many requests. Try again later.", { "Retry-After": String(wait) }));
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText("Not sent: your limit is reached.").waitFor();
    await composer(page).fill("And then?");
    await expect.poll(() => send(page).getAttribute("aria-disabled")).toBe("true");
    expect(await described(send(page))).toContain("You have reached your limit for the moment.");
    await composer(page).press("Enter");
    expect(await composer(page).inputValue()).toBe("And then?");

    const byItself = page.getByRole("checkbox", { name: "Send by itself then" });
    expect(await byItself.count()).toBe(1);
    await byItself.press("Space");
    await page.getByText("Saved on this device. Sent by itself when your limit allows it.").waitFor();
    await expectAccessibleInBothLooks(page, "over the limit");
    await page.clock.fastForward((wait / 2) * 1_000);
    await page.getByText(/You can send again in ([12]\d\d|\d\d|\d) seconds/).first().waitFor();
    expect(asked, "tries before the time has come").toBe(1);
    await page.clock.fastForward((wait / 2) * 1_000);
    await page.getByText(/\b42\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await said(account, conversation)).toEqual(["Hello!", "What is 6*7?"]);
    expect(asked).toBe(2);
    expect(await composer(page).inputValue()).toBe("And then?");
    await expect.poll(() => send(page).getAttribute("aria-disabled")).toBeNull();
    await visit.close();
  });

  test("39 what is too long is said before it is sent; what is just not is sent", async () => {
    const { account, conversation, visit, page } = await somebody();
    const longest = 100_000;
    let asked = 0;
    page.on("request", (request) => void (asked += Number(request.url() === `${url}/chat`)));
    await composer(page).fill("x".repeat(longest + 1));
    await page.getByRole("alert").getByText(/^1 character too many/).waitFor();
    expect(await send(page).getAttribute("aria-disabled")).toBe("true");
    expect(await described(send(page))).toContain("1 character too many");
    expect(await composer(page).getAttribute("aria-invalid")).toBe("true");
    await expectAccessibleInBothLooks(page, "a message that is too long");
    await composer(page).press("Enter");
    expect((await composer(page).inputValue()).length).toBe(longest + 1);
    expect(asked).toBe(0);
    await composer(page).press("Backspace");
    await page.getByRole("alert").getByText(/too many/).waitFor({ state: "hidden" });
    await composer(page).press("Enter");
    await expect.poll(async () => (await said(account, conversation)).map((text) => text?.length)).toEqual(["Hello!".length, longest]);
    expect(await composer(page).getAttribute("aria-invalid")).toBeNull();
    await visit.close();
  });

  test("39 what the service finds too long is back in the field, with the reason", async () => {
    const { visit, page } = await somebody();
    await page.route(`${url}/chat`, (route) => route.fulfill(refusal(413, "too_large", "The body is too large.")), { times: 1 });
    await composer(page).fill("A long story");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText("The service found this too long. It is back here, unsent.").waitFor();
    expect(await composer(page).inputValue()).toBe("A long story");
    expect(await composer(page).getAttribute("aria-invalid")).toBe("true");
    expect(await described(composer(page))).toContain("The service found this too long.");
    await expectAccessibleInBothLooks(page, "a message that came back");
    await composer(page).fill("A short one: what is 6*7?");
    await page.getByRole("alert").getByText(/too long/).waitFor({ state: "hidden" });
    await composer(page).press("Enter");
    await page.getByText(/\b42\b/).first().waitFor();
    await visit.close();
  });

  test("39 what the service finds wrong while something else is written stays where it is, says why, and is taken back", async () => {
    const { account, conversation, visit, page } = await somebody();
    let refuse = (_: Route) => {};
    const asked = new Promise<Route>((resolve) => (refuse = resolve));
    await page.route(`${url}/chat`, (route) => refuse(route), { times: 1 });
    await composer(page).fill("With a wrong sign");
    await composer(page).press("Enter");
    await composer(page).fill("Meanwhile");
    await (await asked).fulfill(refusal(422, "invalid", "The request holds a wrong value.", {}, { errors: [{ field: "body.input", message: "holds a sign that is not allowed" }] }));
    await page.getByRole("alert").getByText("Not sent. The service says: holds a sign that is not allowed").waitFor();
    expect(await composer(page).inputValue()).toBe("Meanwhile");
    await expectAccessibleInBothLooks(page, "a message that was refused");
    await press(page, "Back into the composer");
    await expect.poll(() => composer(page).inputValue()).toBe("Meanwhile\n\nWith a wrong sign");
    await expectFocus(composer(page));
    await expect.poll(() => draftOf(account, conversation)).toBe("Meanwhile\n\nWith a wrong sign");
    expect(await said(account, conversation)).toEqual(["Hello!"]);
    await visit.close();
  });
});

describe("a service that cannot", () => {
  test("40 the parts that are down are named; what waits is sent once when they are back", async () => {
    const { account, conversation, visit, page } = await somebody();
    let down = true;
    let taken = 0;
    const checks = { persistence: "down", cache: "slow", object_storage: "ok", malware_scanning: "ok", model_access: "down" };
    await page.route(`${url}/ready`, (route) => (down ? route.fulfill({ status: 503, contentType: "application/json", body: JSON.stringify({ status: "not_ready", checks }) }) : route.continue()));
    await page.route(`${url}/chat`, (route) => {
      if (down) return route.fulfill(refusal(503, "unavailable", "The service cannot do this right now. Try again.", { "Retry-After": "30" }));
      taken++;
      return route.continue();
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByRole("status").getByText("Saved on this device, not sent yet. Not available right now: the database and the language model.").waitFor();
    await expectAccessibleInBothLooks(page, "a part that is down");
    down = false;
    await press(page, "Try now");
    await page.getByText(/\b42\b/).first().waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await said(account, conversation)).toEqual(["Hello!", "What is 6*7?"]);
    expect(taken).toBe(1);
    await visit.close();
  });

  test("40 what was read meanwhile is marked as read once that can be kept", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    const visit = await Visit.open("/", account);
    await visit.page.route(`${url}/conversations/${conversation}/read`, (route) => route.fulfill(refusal(503, "unavailable", "The limiter is not available.", { "Retry-After": "1" })), { times: 2 });
    await visit.page.goto(`${url}/c/${conversation}`);
    await messages(visit.page).nth(1).waitFor();
    await expect.poll(async () => (await account.read<{ unread: boolean }>(`/conversations/${conversation}`)).unread).toBe(false);
    await visit.close();
  });

  test("40 a page that is opened meanwhile says so, and tries at once when it is asked to", async () => {
    const { visit, page } = await somebody();
    let down = true;
    await page.route(`${url}/auth/session`, (route) => (down ? route.fulfill(refusal(503, "unavailable", "The service cannot do this right now. Try again.", { "Retry-After": "120" })) : route.continue()));
    await page.reload();
    await page.getByRole("heading", { name: "The service is not available right now" }).waitFor();
    await expectAccessibleInBothLooks(page, "a service that is away");
    await press(page, "Try now");
    await expectFocus(page.getByRole("button", { name: "Try now" }));
    down = false;
    await press(page, "Try now");
    await messages(page).nth(1).waitFor();
    await visit.close();
  });

  test("40 a conversation that cannot be read is not taken for one that is lost", async () => {
    const { conversation, visit, page } = await somebody();
    let down = true;
    await page.route(`${url}/conversations/${conversation}`, (route) => (down ? route.fulfill(refusal(503, "unavailable", "The service cannot do this right now. Try again.")) : route.continue()));
    await page.reload();
    await page.getByRole("alert").getByText("The service cannot answer right now. Nothing is lost.").waitFor();
    await expectAccessibleInBothLooks(page, "a conversation that cannot be read");
    down = false;
    await press(page, "Try again");
    await messages(page).nth(1).waitFor();
    await visit.close();
  });
});
