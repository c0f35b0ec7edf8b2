// Tests of requests for approval: a tool call waits for the user, on every device and across reloads, and runs only with
// the input that the user has approved.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import {
  composer,
  expectFocus,
  intercept,
  messages,
  recordAnnouncements,
  refusal,
  send,
  sidebar,
  stop,
  waitForAnswerEnd,
} from "./conversation-page";
import { recordNotifications } from "./notifications";
import { Account, BrowserWindow, phone, sharedAccount, withBrowser } from "./harness";

withBrowser();

const asks = "[[script approval=high:irreversible tokens=5]]";
const request = (page: Page) => page.getByRole("region", { name: "Approval request: Demonstrate an action" });
const button = (page: Page, name: string) => request(page).getByRole("button", { name, exact: true });
const waits = (page: Page) => page.getByText("Waiting for your approval", { exact: true });

interface Decided {
  state: string;
  decision: string;
  input: Record<string, unknown>;
}

/** Opens a conversation whose answer waits for an approval. */
async function open(
  account: Account,
  text = asks,
): Promise<{ visit: BrowserWindow; page: Page; conversation: string }> {
  const { conversation } = await account.startTurn(text);
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  await request(visit.page).first().waitFor();
  return { visit, page: visit.page, conversation };
}

async function lastDecided(account: Account): Promise<Decided> {
  return (await account.read<{ data: Decided[] }>("/approvals?state=decided&limit=1")).data[0]!;
}

/** Returns the input with which the last call of a conversation ran, and its outcome. */
async function lastCall(account: Account, conversation: string) {
  const { data } = await account.read<{
    data: { parts: { type: string; state?: string; input?: unknown; approval?: { reason?: string } }[] }[];
  }>(`/conversations/${conversation}/messages`);
  return data.at(-1)!.parts.find(({ type }) => type === "tool")!;
}

describe("a request for approval", () => {
  test("19 says what the call does, why it asks, its risk and its exact input, and the answer waits", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const announced = await recordAnnouncements(page);
    await send(page, asks);
    await request(page).waitFor();
    const text = (await request(page).innerText()).replace(/\s+/g, " ");
    expect(text).toMatch(/Expires in 2[34] hours/); // of 24, less what has passed
    for (const part of [
      "Sends a note of 29 characters to nobody.",
      "Why it asks The call sends something that others may see.",
      "What changes nobody would get the note.",
      "Target nobody",
      "Risk High",
      "Can be undone No",
      "note A note of the scripted model.",
    ])
      expect(text).toContain(part);
    await expectFocus(composer(page));
    await button(page, "Input as JSON").press("Enter");
    await request(page)
      .getByText(/"recipient": "nobody"/)
      .waitFor();
    // The status of the answer, the request, the call and the composer say so; nothing says that it works.
    await expect.poll(() => waits(page).count()).toBe(3);
    expect(await page.locator(".animate-pulse").count()).toBe(0);
    await expect
      .poll(async () => (await announced()).map((one) => one.text))
      .toContainEqual(expect.stringMatching(/^Waiting for your approval: Demonstrate an action\. Sends a note/));
    await page.getByRole("button", { name: "Show request" }).press("Enter");
    await expectFocus(request(page));
    await expectAccessibleOnDesktopAndPhone(page, "a request for approval");
    await stop(page).press("Enter");
    await waitForAnswerEnd(page);
    await request(page).getByText("The answer ended before you decided. It didn't run.").waitFor();
    await visit.close();
  });

  test("19 is approved after a reload, and another device shows it", async () => {
    const account = await sharedAccount();
    const { visit, page, conversation } = await open(account);
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, { viewport: phone });
    await page.reload();
    await request(mobile.page).waitFor();
    await expect.poll(() => waits(page).count()).toBe(3);
    await button(page, "Approve").press("Enter");
    await expectFocus(request(page));
    for (const shown of [page, mobile.page]) {
      await request(shown).getByText("You approved this.").waitFor();
      await messages(shown)
        .last()
        .getByText(/^The ruddy turnstone/)
        .waitFor();
      await waitForAnswerEnd(shown);
      expect(await waits(shown).count()).toBe(0);
    }
    expect(await lastDecided(account)).toMatchObject({ state: "approved", decision: "approve_once" });
    await page.reload();
    await request(page).getByText("You approved this.").waitFor();
    expect(await request(page).getByRole("button").count()).toBe(0);
    await visit.close();
    await mobile.close();
  });

  test("19 is rejected with a reason", async () => {
    const account = await sharedAccount();
    const { visit, page, conversation } = await open(account);
    await button(page, "Reject").press("Enter");
    const reason = request(page).getByRole("textbox", { name: "Reason (optional)" });
    await expectFocus(reason);
    await reason.press("Escape"); // closes the form, and does not stop the answer
    await expectFocus(button(page, "Reject"));
    await button(page, "Reject").press("Enter");
    await reason.fill("Not today.");
    await button(page, "Reject").press("Enter");
    await request(page).getByText("You rejected this. It didn't run.").waitFor();
    await request(page).getByText("Reason: Not today.").waitFor();
    await waitForAnswerEnd(page);
    expect(await lastCall(account, conversation)).toMatchObject({
      state: "rejected",
      approval: { reason: "Not today." },
    });
    await visit.close();
  });

  test("19 is approved with another input, after the service has refused a wrong one", async () => {
    const account = await sharedAccount();
    const { visit, page, conversation } = await open(account);
    await button(page, "Edit and approve").press("Enter");
    const field = (name: string) => request(page).getByRole("textbox", { name, exact: true });
    await expectFocus(field("note"));
    await expectAccessibleOnDesktopAndPhone(page, "the form of an input");
    await field("risk").fill("enormous");
    await button(page, "Approve with changes").press("Enter");
    await request(page)
      .getByRole("alert")
      .getByText(/^Couldn't send your decision: The edited_input field is not an input of the tool/)
      .waitFor();
    await field("risk").fill("high");
    await field("note").fill("A shorter note.\nOf two lines.");
    await button(page, "Approve with changes").press("Enter");
    await request(page).getByText("You approved this with changes.").waitFor();
    await waitForAnswerEnd(page);
    expect(await lastCall(account, conversation)).toMatchObject({
      state: "succeeded",
      input: { note: "A shorter note.\nOf two lines.", recipient: "nobody" },
    });
    await visit.close();
  });

  test("19 without a response, the same decision is sent again; a decision of another device is shown instead", async () => {
    const account = await sharedAccount();
    const { visit, page } = await open(account);
    const requests = await intercept(page, "POST", "**/chat/steering");
    await button(page, "Approve").press("Enter");
    await request(page).getByText("Sending your decision…").waitFor();
    expect(await button(page, "Reject").isDisabled()).toBe(true);
    await expect.poll(() => requests.length).toBe(1);
    const sent = requests[0]!.request().postData();
    await requests[0]!.abort();
    await request(page).getByText("Can't reach the server. Trying again…").waitFor();
    await expect.poll(() => requests.length).toBe(2);
    expect(requests[1]!.request().postData()).toBe(sent);
    const current = { decision: "reject", state: "rejected" };
    await requests[1]!.fulfill(refusal(409, "approval_decided", "Decided.", {}, { current }));
    await request(page).getByText("Your decision wasn't used. This was already settled:").waitFor();
    await request(page).getByText("You rejected this. It didn't run.").waitFor();
    await page.unrouteAll();
    await stop(page).press("Enter");
    await waitForAnswerEnd(page);
    await visit.close();
  });

  test("19 two requests are decided one by one, and the answer waits for both", async () => {
    const account = await sharedAccount();
    const { visit, page } = await open(
      account,
      "[[script approval=low:reversible approval=critical:irreversible tokens=5]]",
    );
    await expect.poll(() => request(page).count()).toBe(2);
    const critical = request(page).filter({ hasText: "Critical" });
    expect(await critical.getByRole("button", { name: "Approve for this conversation" }).count()).toBe(0);
    await critical.getByRole("button", { name: "Approve", exact: true }).press("Enter");
    await request(page).getByText("You approved this.").waitFor();
    await expect.poll(() => waits(page).count()).toBe(3);
    await button(page, "Approve for this conversation").press("Enter");
    await request(page).getByText("You approved this for the conversation.").waitFor();
    await waitForAnswerEnd(page);
    await visit.close();
  });

  test("19 27 those of all conversations are listed in the sidebar, which follows decisions of other devices", async () => {
    const account = await Account.register(); // whose only requests are these
    const first = await account.startTurn(asks);
    const second = await account.startTurn(asks);
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await sidebar(page).getByText("waiting for your approval").nth(1).waitFor({ state: "attached" });
    await sidebar(page).getByRole("button", { name: "2 requests for approval" }).press("Enter");
    await page
      .getByRole("menuitem", { name: /^Demonstrate an action/ })
      .first()
      .press("Enter"); // the newest
    await request(page).waitFor();
    expect(page.url()).toContain(second.conversation);
    await account.request("POST", "/chat/steering", { type: "cancel", turn_id: first.turn });
    await sidebar(page).getByRole("button", { name: "1 request for approval" }).waitFor();
    await button(page, "Approve").press("Enter");
    await sidebar(page)
      .getByRole("button", { name: /for approval/ })
      .waitFor({ state: "detached" });
    await waitForAnswerEnd(page);
    await visit.close();
  });

  test("19 27 the list of a phone shows every character of a long request", async () => {
    const account = await Account.register();
    await account.startTurn(asks);
    const visit = await BrowserWindow.open("/", account, { viewport: phone });
    const { page } = visit;
    const summary = `Searches the web for: ${"tides of the north sea ".repeat(8)}${"x".repeat(90)}.`;
    await page.route(/\/approvals\?/, async (route) => {
      const response = await route.fetch();
      const list = (await response.json()) as { data: object[] };
      await route.fulfill({ response, json: { ...list, data: list.data.map((one) => ({ ...one, summary })) } });
    });
    await page.reload();
    await page.getByRole("button", { name: "Show sidebar" }).press("Enter");
    await sidebar(page).getByRole("button", { name: "1 request for approval" }).press("Enter");
    const text = page.getByRole("menuitem").getByText(summary);
    await text.waitFor();
    const { x, width } = (await text.boundingBox())!;
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(phone.width);
    expect(
      await text.evaluate((element) => element.scrollWidth <= element.clientWidth || element.clientWidth === 0),
    ).toBe(true);
    await visit.close();
  });

  test("27 those of other conversations are in the title of the page, and in a notification once the user allows them", async () => {
    const account = await Account.register();
    const shown = await account.chat("Hello!");
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    const notifications = await recordNotifications(page);
    await page.goto(new URL("/settings", page.url()).href);
    const choice = page.getByRole("checkbox", { name: "Notify me when an answer is ready, a tool needs" });
    await choice.waitFor();
    expect(await page.evaluate(() => Notification.permission)).toBe("default");
    await choice.press("Space");
    await expect.poll(() => choice.isChecked()).toBe(true);
    await visit.follow(`/c/${shown}`);
    await messages(page).nth(1).waitFor();
    const other = await account.startTurn(asks);
    await expect.poll(() => page.title()).toMatch(/^\(1\) /);
    await expect.poll(notifications.shown).toEqual(["Waiting for your approval: Demonstrate an action false"]);
    await notifications.click(0);
    await button(page, "Approve").press("Enter");
    await waitForAnswerEnd(page);
    expect(page.url()).toContain(other.conversation);
    await expect.poll(() => page.title()).not.toMatch(/^\(/);
    expect(await notifications.shown()).toEqual(["Waiting for your approval: Demonstrate an action true"]);
    await visit.close();
  });
});
