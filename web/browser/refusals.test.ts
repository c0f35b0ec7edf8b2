// Tests of refused requests through the user interface: the displayed notices are true, the text is never lost, and the
// decision of the user takes effect once.
import type { Locator, Page, Route } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { composer, endless, expectFocus, messages, refusal, stop, stored } from "./conversation-page";
import { Account, phone, sharedAccount, url, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const send = (page: Page) => page.getByRole("button", { name: "Send", exact: true });
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).press("Enter");

async function userTexts(account: Account, conversation: string): Promise<(string | undefined)[]> {
  return (await stored(account, conversation))
    .filter((message) => message.role === "user")
    .map((message) => message.parts[0]?.text);
}

interface StoredConversation {
  draft: { content: string };
  follow_ups: { content: string; state: string }[];
}

const load = (account: Account, conversation: string): Promise<StoredConversation> =>
  account.read<StoredConversation>(`/conversations/${conversation}`);
const draftOf = async (account: Account, conversation: string) => (await load(account, conversation)).draft.content;

interface Opened {
  account: Account;
  conversation: string;
  visit: BrowserWindow;
  page: Page;
}

/** Creates a conversation with one answer and opens it. */
async function openConversation(): Promise<Opened> {
  const account = await sharedAccount();
  const conversation = await account.chat("Hello!");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  await waitUntilRead(visit.page, account, conversation);
  return { account, conversation, visit, page: visit.page };
}

async function waitUntilRead(page: Page, account: Account, conversation: string): Promise<void> {
  await messages(page).nth(1).waitFor();
  // The response to marking it as read also contains the state of the conversation, so it must have arrived.
  await expect
    .poll(async () => (await account.read<{ unread: boolean }>(`/conversations/${conversation}`)).unread)
    .toBe(false);
}

/** Loads a page without the account's feed: it learns of what other devices do only from refusals. */
async function openWithoutFeed(account: Account, path: string): Promise<BrowserWindow> {
  const visit = await BrowserWindow.open("/health", account);
  await visit.page.route(`${url}/events*`, (route) => route.abort());
  await visit.page.goto(url + path);
  return visit;
}

/** Creates a conversation with one answer and opens it in a page without feed. */
async function openNextWithoutFeed(account: Account, visit: BrowserWindow): Promise<Opened> {
  const conversation = await account.chat("Hello!");
  await visit.follow(`/c/${conversation}`);
  await waitUntilRead(visit.page, account, conversation);
  return { account, conversation, visit, page: visit.page };
}

/** Withholds the state of the conversation from the page until the returned function is called. */
async function withholdConversation(page: Page, conversation: string): Promise<() => void> {
  let release = () => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(`${url}/conversations/${conversation}`, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}

async function cancel(account: Account, turn: string): Promise<void> {
  await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn });
  await expect.poll(async () => (await account.read<{ state: string }>(`/chat/turns/${turn}`)).state).toBe("cancelled");
}

/** Returns the accessible description of a control. */
async function described(control: Locator): Promise<string> {
  return control.evaluate((element) =>
    (element.getAttribute("aria-describedby") ?? "")
      .split(" ")
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join(" "),
  );
}

describe("concurrent changes", () => {
  test("38 if two devices changed a draft, both versions are shown, and the chosen one is used on both", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    const laptop = await BrowserWindow.open(`/c/${conversation}`, account);
    await messages(mobile.page).nth(1).waitFor();
    await messages(laptop.page).nth(1).waitFor();
    const conflict = mobile.page.getByRole("region", { name: "This draft was changed on another device" });
    const localOnly = mobile.page.getByText(/Saved on this device; syncs/);
    const editBoth = async (onMobile: string, onLaptop: string) => {
      await mobile.context.setOffline(true);
      await composer(mobile.page).fill(onMobile);
      await localOnly.waitFor();
      await composer(laptop.page).fill(onLaptop);
      await expect.poll(() => draftOf(account, conversation)).toBe(onLaptop);
      await mobile.context.setOffline(false);
      await conflict.getByRole("alert").getByText("Both versions are kept until you choose one.").waitFor();
      await conflict.getByText(onLaptop, { exact: true }).waitFor();
      await conflict.getByText(onMobile, { exact: true }).waitFor();
      expect(await composer(mobile.page).inputValue()).toBe(onMobile);
      expect(await draftOf(account, conversation)).toBe(onLaptop);
    };
    const expectSettled = async (text: string) => {
      await conflict.waitFor({ state: "hidden" });
      await localOnly.waitFor({ state: "hidden" });
      await expectFocus(composer(mobile.page));
      expect(await composer(mobile.page).inputValue()).toBe(text);
      await expect.poll(() => composer(laptop.page).inputValue()).toBe(text);
      expect(await draftOf(account, conversation)).toBe(text);
    };

    await editBoth("Seen from the train", "Seen from the desk");
    await expectAccessibleInBothColorSchemes(mobile.page, "two versions of a draft");
    await conflict.getByRole("button", { name: "Use the other draft" }).press("Enter");
    await expectSettled("Seen from the desk");

    await editBoth("The train is right", "The desk is right");
    await conflict.getByRole("button", { name: "Keep this draft" }).press("Enter");
    await expect.poll(() => draftOf(account, conversation)).toBe("The train is right");
    await expectSettled("The train is right");
    await mobile.close();
    await laptop.close();
  });

  test("38 if two devices changed a setting, the user chooses a value; other changed settings are merged", async () => {
    const account = await Account.register();
    const visit = await openWithoutFeed(account, "/settings");
    const { page } = visit;
    const dialog = page.getByRole("dialog", { name: "Changed in two places" });
    const choice = (name: RegExp) => page.getByRole("radio", { name });
    const settings = () => account.read<Record<string, unknown>>("/account/settings");
    const changeElsewhere = async (change: object) => {
      const { version: _, ...now } = await settings();
      await account.request("PUT", "/account/settings", { ...now, ...change });
    };
    const busyAction = async () => (await settings())["busy_action"];

    await choice(/^Queue/).waitFor();
    await changeElsewhere({ busy_action: "interrupt" });
    await choice(/^Steer/).press("Space");
    await dialog.getByText("This device: Steer").waitFor();
    await dialog.getByText("Other device: Interrupt").waitFor();
    await expectAccessibleInBothColorSchemes(page, "two values of a setting");
    await dialog.getByRole("button", { name: "Use the other device's" }).press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => choice(/^Interrupt/).isChecked()).toBe(true);
    expect(await busyAction()).toBe("interrupt");

    await changeElsewhere({ busy_action: "queue" });
    await choice(/^Steer/).press("Space");
    await dialog.getByText("Other device: Queue").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => choice(/^Queue/).isChecked()).toBe(true);
    expect(await busyAction()).toBe("queue");
    await expectFocus(choice(/^Steer/));

    await changeElsewhere({ busy_action: "interrupt" });
    await choice(/^Steer/).press("Space");
    await dialog.getByRole("button", { name: "Use this device's" }).press("Enter");
    await expect.poll(busyAction).toBe("steer");
    await expect.poll(() => choice(/^Steer/).isChecked()).toBe(true);

    await changeElsewhere({ send_key: "mod_enter" });
    await choice(/^Dark$/).press("Space");
    await expect.poll(settings).toMatchObject({ theme: "dark", send_key: "mod_enter", busy_action: "steer" });
    await expect.poll(() => choice(/^Ctrl\+Enter/).isChecked()).toBe(true);
    expect(await dialog.count()).toBe(0);
    await visit.close();
  });

  test("38 a message that follows an unseen one is sent only after a confirmation, and once", async () => {
    const account = await sharedAccount();
    const visit = await openWithoutFeed(account, "/");
    const { conversation, page } = await openNextWithoutFeed(account, visit);
    const release = await withholdConversation(page, conversation);
    await account.chat("From another device.", { conversation_id: conversation });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page
      .getByRole("alert")
      .getByText(/this conversation changed/)
      .waitFor();
    release();
    await page.getByText("From another device.").first().waitFor();
    expect(await userTexts(account, conversation)).toEqual(["Hello!", "From another device."]);
    await expectAccessibleInBothColorSchemes(page, "a conversation with unseen messages");
    await press(page, "Send anyway");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await userTexts(account, conversation)).toEqual(["Hello!", "From another device.", "What is 6*7?"]);
    await expectFocus(composer(page));
    await page.goto(`${url}/health`); // the next test needs the feed
    await visit.close();
  });
});

describe("a live answer that this page does not know", () => {
  /** Sends a message that is refused because another device has started a turn. */
  async function sendRefused(opened: Opened, text: string): Promise<{ turn: string; release: () => void }> {
    const { account, conversation, page } = opened;
    const release = await withholdConversation(page, conversation);
    const { turn } = await account.startTurn(endless, { conversation_id: conversation });
    await composer(page).fill(text);
    await composer(page).press("Enter");
    await page
      .getByRole("alert")
      .getByText(/another answer is in progress/)
      .waitFor();
    return { turn, release };
  }

  async function queueInstead(opened: Opened): Promise<void> {
    const { account, conversation, page } = opened;
    const { turn, release } = await sendRefused(opened, "And then?");
    release();
    await stop(page).waitFor();
    await expectAccessibleInBothColorSchemes(page, "a message refused because of another answer");
    await press(page, "Queue instead");
    await page.getByText("Sends after this answer").waitFor();
    expect((await load(account, conversation)).follow_ups).toMatchObject([{ content: "And then?", state: "queued" }]);
    await expect
      .poll(() =>
        page
          .getByRole("alert")
          .getByText(/Not sent/)
          .count(),
      )
      .toBe(0);
    await expectFocus(composer(page));
    await cancel(account, turn);
    expect(await userTexts(account, conversation)).toEqual(["Hello!", endless]);
  }

  async function steerInstead(opened: Opened): Promise<void> {
    const { account, conversation, page } = opened;
    const { turn, release } = await sendRefused(opened, "Shorter, please.");
    const steered = page.waitForResponse((response) => new URL(response.url()).pathname === "/chat/steering");
    await press(page, "Steer instead");
    const steering = await steered;
    expect([steering.status(), (steering.request().postDataJSON() as { turn_id: string }).turn_id]).toEqual([
      202,
      turn,
    ]);
    release();
    await messages(page).last().getByText("Shorter, please.", { exact: true }).waitFor();
    await cancel(account, turn);
    expect((await load(account, conversation)).follow_ups).toEqual([]);
    expect(await userTexts(account, conversation)).toEqual(["Hello!", endless]);
  }

  async function returnToComposer(opened: Opened): Promise<void> {
    const { account, conversation, page } = opened;
    const { turn, release } = await sendRefused(opened, "A thought");
    release();
    await stop(page).waitFor();
    await press(page, "Edit");
    await expect.poll(() => composer(page).inputValue()).toBe("A thought");
    await expectFocus(composer(page));
    await expect.poll(() => draftOf(account, conversation)).toBe("A thought");
    await cancel(account, turn);
    expect(await userTexts(account, conversation)).toEqual(["Hello!", endless]);
    expect((await load(account, conversation)).follow_ups).toEqual([]);
  }

  async function queueAfterTheEnd(opened: Opened): Promise<void> {
    const { account, conversation, page } = opened;
    const { turn, release } = await sendRefused(opened, "What is 6*7?");
    release();
    await stop(page).waitFor();
    await cancel(account, turn);
    await stop(page).waitFor({ state: "hidden" });
    await press(page, "Queue instead");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await userTexts(account, conversation)).toEqual(["Hello!", endless, "What is 6*7?"]);
    expect((await load(account, conversation)).follow_ups).toEqual([]);
  }

  test("38 the refused message can be queued, also after the end, steer the answer that only the refusal named, or return to the composer", async () => {
    const account = await sharedAccount();
    const visit = await openWithoutFeed(account, "/");
    for (const use of [queueInstead, steerInstead, returnToComposer, queueAfterTheEnd])
      await use(await openNextWithoutFeed(account, visit));
    await visit.page.goto(`${url}/health`); // the next test needs the feed
    await visit.close();
  });

  test("38 a refused new version of a message is sent when the user tries again", async () => {
    const { account, conversation, visit, page } = await openConversation();
    const release = await withholdConversation(page, conversation);
    const { turn } = await account.startTurn(endless, { conversation_id: conversation });
    await composer(page).press("ArrowUp");
    const editor = page.getByRole("textbox", { name: "Edit your message" });
    await editor.fill("What is 6*8?");
    await editor.press("Enter");
    await page
      .getByRole("alert")
      .getByText(/another answer is in progress/)
      .waitFor();
    release();
    await stop(page).waitFor();
    await cancel(account, turn);
    await stop(page).waitFor({ state: "hidden" });
    await messages(page).last().getByRole("button", { name: "Try again" }).press("Enter");
    await page
      .getByText(/\b48\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect((await stored(account, conversation)).map((message) => message.sibling_count)).toEqual([2, 1]);
    expect(await userTexts(account, conversation)).toEqual(["What is 6*8?"]);
    await visit.close();
  });

  test("38 and 8 a steering input that comes too late can be sent as the next message, once", async () => {
    const account = await sharedAccount();
    const { conversation, turn } = await account.startTurn(endless);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await stop(page).waitFor();
    // The answer ends while the request with the input is in flight.
    await page.route(`${url}/chat/steering`, async (route) => {
      await cancel(account, turn);
      await route.continue();
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("ControlOrMeta+Enter");
    await page.getByRole("alert").getByText("Not sent: the answer had already finished.").waitFor();
    expect(await userTexts(account, conversation)).toEqual([endless]);
    await stop(page).waitFor({ state: "hidden" });
    await expectAccessibleInBothColorSchemes(page, "steering that came too late");
    await press(page, "Queue instead");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await userTexts(account, conversation)).toEqual([endless, "What is 6*7?"]);
    expect((await load(account, conversation)).follow_ups).toEqual([]);
    await expect
      .poll(() =>
        page
          .getByRole("alert")
          .getByText(/Not sent/)
          .count(),
      )
      .toBe(0);
    await visit.close();
  });
});

describe("over the maximum length, and with other wrong values", () => {
  test("39 a text over the maximum length is reported before sending, and a text of that length is sent", async () => {
    const { account, conversation, visit, page } = await openConversation();
    const maxLength = 100_000;
    let requests = 0;
    page.on("request", (request) => void (requests += Number(request.url() === `${url}/chat`)));
    await composer(page).fill("x".repeat(maxLength + 1));
    await page
      .getByRole("alert")
      .getByText(/^1 character over the limit/)
      .waitFor();
    expect(await send(page).getAttribute("aria-disabled")).toBe("true");
    expect(await described(send(page))).toContain("1 character over the limit.");
    expect(await composer(page).getAttribute("aria-invalid")).toBe("true");
    await expectAccessibleInBothColorSchemes(page, "a message that is too long");
    await composer(page).press("Enter");
    expect((await composer(page).inputValue()).length).toBe(maxLength + 1);
    expect(requests).toBe(0);
    await composer(page).press("Backspace");
    await page
      .getByRole("alert")
      .getByText(/over the limit/)
      .waitFor({ state: "hidden" });
    await composer(page).press("Enter");
    await expect
      .poll(async () => (await userTexts(account, conversation)).map((text) => text?.length))
      .toEqual(["Hello!".length, maxLength]);
    expect(await composer(page).getAttribute("aria-invalid")).toBeNull();
    await visit.close();
  });

  test("39 a message that the service refuses as too long returns to the composer with the reason", async () => {
    const { visit, page } = await openConversation();
    await page.route(`${url}/chat`, (route) => route.fulfill(refusal(413, "too_large", "The body is too large.")), {
      times: 1,
    });
    await composer(page).fill("A long story");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText("Too long to send. Your text is back here.").waitFor();
    expect(await composer(page).inputValue()).toBe("A long story");
    expect(await composer(page).getAttribute("aria-invalid")).toBe("true");
    expect(await described(composer(page))).toContain("Too long to send.");
    await expectAccessibleInBothColorSchemes(page, "a message returned to the composer");
    await composer(page).fill("A short one: what is 6*7?");
    await page
      .getByRole("alert")
      .getByText(/Too long to send/)
      .waitFor({ state: "hidden" });
    await composer(page).press("Enter");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await visit.close();
  });

  test("39 a message refused while the user types shows the reason and can be returned to the composer", async () => {
    const { account, conversation, visit, page } = await openConversation();
    let refuse = (_: Route) => {};
    const request = new Promise<Route>((resolve) => (refuse = resolve));
    await page.route(`${url}/chat`, (route) => refuse(route), { times: 1 });
    await composer(page).fill("With a wrong sign");
    await composer(page).press("Enter");
    await composer(page).fill("Meanwhile");
    await (
      await request
    ).fulfill(
      refusal(
        422,
        "invalid",
        "The request holds a wrong value.",
        {},
        { errors: [{ field: "body.input", message: "holds a sign that is not allowed" }] },
      ),
    );
    await page.getByRole("alert").getByText("Not sent: The input field holds a sign that is not allowed.").waitFor();
    expect(await composer(page).inputValue()).toBe("Meanwhile");
    await expectAccessibleInBothColorSchemes(page, "a message that was refused");
    // The pencil of the other message has the same name, and no text.
    await page.getByRole("button", { name: "Edit", exact: true }).filter({ hasText: "Edit" }).press("Enter");
    await expect.poll(() => composer(page).inputValue()).toBe("Meanwhile\n\nWith a wrong sign");
    await expectFocus(composer(page));
    await expect.poll(() => draftOf(account, conversation)).toBe("Meanwhile\n\nWith a wrong sign");
    expect(await userTexts(account, conversation)).toEqual(["Hello!"]);
    await visit.close();
  });
});

describe("an unavailable service", () => {
  test("40 the unavailable parts are named, and a waiting message is sent once when they are back", async () => {
    const { account, conversation, visit, page } = await openConversation();
    let down = true;
    let accepted = 0;
    const checks = {
      persistence: "down",
      cache: "slow",
      object_storage: "ok",
      malware_scanning: "ok",
      model_access: "down",
    };
    await page.route(`${url}/ready`, (route) =>
      down
        ? route.fulfill({
            status: 503,
            contentType: "application/json",
            body: JSON.stringify({ status: "not_ready", checks }),
          })
        : route.continue(),
    );
    await page.route(`${url}/chat`, (route) => {
      if (down)
        return route.fulfill(
          refusal(503, "unavailable", "The service cannot do this right now. Try again.", { "Retry-After": "30" }),
        );
      accepted++;
      return route.continue();
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page
      .getByRole("status")
      .getByText("Saved on this device. Unavailable right now: the database and the language model.")
      .waitFor();
    await expectAccessibleInBothColorSchemes(page, "an unavailable part");
    down = false;
    await press(page, "Try now");
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await userTexts(account, conversation)).toEqual(["Hello!", "What is 6*7?"]);
    expect(accepted).toBe(1);
    await visit.close();
  });

  test("40 a conversation read while the service refuses to store it is marked as read later", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open("/", account);
    await visit.page.route(
      `${url}/conversations/${conversation}/read`,
      (route) => route.fulfill(refusal(503, "unavailable", "The limiter is not available.", { "Retry-After": "1" })),
      { times: 2 },
    );
    await visit.follow(`/c/${conversation}`);
    await messages(visit.page).nth(1).waitFor();
    await expect
      .poll(async () => (await account.read<{ unread: boolean }>(`/conversations/${conversation}`)).unread)
      .toBe(false);
    await visit.close();
  });

  test("40 a page opened during an outage reports it, and retries at once when the user asks", async () => {
    const { visit, page } = await openConversation();
    let down = true;
    await page.route(`${url}/auth/session`, (route) =>
      down
        ? route.fulfill(
            refusal(503, "unavailable", "The service cannot do this right now. Try again.", { "Retry-After": "120" }),
          )
        : route.continue(),
    );
    await page.reload();
    await page.getByRole("heading", { name: "The server isn't available right now" }).waitFor();
    await expectAccessibleInBothColorSchemes(page, "an unavailable service");
    await press(page, "Try now");
    await expectFocus(page.getByRole("button", { name: "Try now" }));
    down = false;
    await press(page, "Try now");
    await messages(page).nth(1).waitFor();
    await visit.close();
  });

  test("40 a conversation that cannot be read is not reported as missing", async () => {
    const { conversation, visit, page } = await openConversation();
    let down = true;
    let reads = 0;
    await page.route(`${url}/conversations/${conversation}`, (route) => {
      reads += 1;
      return down
        ? route.fulfill(refusal(503, "unavailable", "The service cannot do this right now. Try again."))
        : route.continue();
    });
    await page.reload();
    await page.getByRole("alert").getByText("The server isn't available right now. Nothing is lost.").waitFor();
    await expectAccessibleInBothColorSchemes(page, "a conversation that cannot be read");
    const before = reads;
    await press(page, "Try again");
    await expect.poll(() => reads).toBeGreaterThan(before);
    down = false; // the page also tries again by itself
    await messages(page).nth(1).waitFor();
    await visit.close();
  });
});

describe("over a limit", () => {
  test("37 sending is disabled with the reason; a waiting message is sent once, after the limit ends", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    const wait = 600;
    let requests = 0;
    await page.clock.install();
    await page.goto(`${url}/c/${conversation}`);
    await waitUntilRead(page, account, conversation);
    await page.route(`${url}/chat`, (route) => {
      return ++requests > 1
        ? route.continue()
        : route.fulfill(
            refusal(429, "rate_limited", "Too many requests. Try again later.", { "Retry-After": String(wait) }),
          );
    });
    await composer(page).fill("What is 6*7?");
    await composer(page).press("Enter");
    await page.getByRole("alert").getByText("Not sent: you reached your limit.").waitFor();
    await composer(page).fill("And then?");
    await expect.poll(() => send(page).getAttribute("aria-disabled")).toBe("true");
    expect(await described(send(page))).toContain("You've reached your limit.");
    await composer(page).press("Enter");
    expect(await composer(page).inputValue()).toBe("And then?");

    const byItself = page.getByRole("checkbox", { name: "Send automatically" });
    expect(await byItself.count()).toBe(1);
    await byItself.press("Space");
    await page.getByText("Sends automatically when your limit resets.").waitFor();
    await expectAccessibleInBothColorSchemes(page, "over the limit");
    await page.clock.fastForward((wait / 2) * 1_000);
    await page
      .getByText(/Trying again in [0-5]:\d\d\./)
      .first()
      .waitFor();
    expect(requests, "requests before the limit has ended").toBe(1);
    await page.clock.fastForward((wait / 2) * 1_000);
    await page
      .getByText(/\b42\b/)
      .first()
      .waitFor();
    await stop(page).waitFor({ state: "hidden" });
    expect(await userTexts(account, conversation)).toEqual(["Hello!", "What is 6*7?"]);
    expect(requests).toBe(2);
    expect(await composer(page).inputValue()).toBe("And then?");
    await expect.poll(() => send(page).getAttribute("aria-disabled")).toBeNull();
    await visit.close();
  });
});
