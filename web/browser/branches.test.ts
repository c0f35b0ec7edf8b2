// Tests of the dialog with the branches of a conversation: the tree, its keys, switching, renaming and copying, and the
// changes of other devices.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessible, expectAccessibleInBothColorSchemes } from "./axe";
import { expectFocus, fast, intercept, messages, pausedAnswer, recordAnnouncements, stored } from "./conversation-page";
import { Account, BrowserWindow, phone, withBrowser } from "./harness";

withBrowser();

interface Branch {
  branch_id: string;
  name: string;
  version: number;
}

const dialogOf = (page: Page) => page.getByRole("dialog", { name: "Branches", exact: true });
const rowsOf = (page: Page) => page.getByRole("treeitem");
const row = (page: Page, name: string) => page.getByRole("treeitem", { name: new RegExp(`^${name}`) });
const menuButton = (page: Page) => page.getByRole("button", { name: "Actions for this conversation" });
const nameField = (page: Page) => page.getByRole("textbox", { name: "Name of the branch" });

const branches = async (account: Account, conversation: string) =>
  (await account.read<{ data: Branch[] }>(`/conversations/${conversation}/branches`)).data;
const activeBranch = async (account: Account, conversation: string) =>
  (await account.read<{ active_branch_id: string }>(`/conversations/${conversation}`)).active_branch_id;
const rename = (account: Account, conversation: string, { branch_id: id }: Branch, name: string) =>
  account.request("PATCH", `/conversations/${conversation}/branches/${id}`, { name });

/** The rows of the tree that are shown, each with its level. */
const outline = (page: Page) =>
  rowsOf(page).evaluateAll((rows) =>
    rows.map((one) => `${one.getAttribute("aria-level")} ${one.querySelector("[id$=name]")!.textContent}`),
  );

/** A conversation with the branches Tomorrow, Next week below it, Feet below that, and Winds, the active one. */
async function branchedConversation(account: Account): Promise<string> {
  const conversation = await account.chat(`How high are tides? ${fast(5)}`);
  const add = (text: string, edited?: string) =>
    account.chat(`${text} ${fast(5)}`, {
      conversation_id: conversation,
      ...(edited === undefined ? {} : { branch: { message_id: edited, mode: "edit" } }),
    });
  const last = async () => (await stored(account, conversation)).at(-2)!.message_id;
  await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
  await add("And tomorrow?");
  const tomorrow = await last();
  await add("And next week?", tomorrow);
  await add("In metres?");
  await add("In feet?", await last());
  await add("And the winds?", tomorrow);
  const names = ["Tomorrow", "Next week", "Feet", "Winds"];
  for (const [at, branch] of (await branches(account, conversation)).entries())
    await rename(account, conversation, branch, names[at]!);
  return conversation;
}

async function openDialog(page: Page): Promise<void> {
  await menuButton(page).press("Enter");
  await page.getByRole("menuitem", { name: "Branches…" }).press("Enter");
  await rowsOf(page).first().waitFor();
}

/** Chooses an item of the menu of a branch. */
async function choose(page: Page, branch: string, item: string): Promise<void> {
  await page.getByRole("button", { name: `Actions for “${branch}”` }).press("Enter");
  await page.getByRole("menuitem", { name: item }).press("Enter");
}

describe("the branches of a conversation", () => {
  test("23 and 24 are loaded in pages, switched, renamed and copied, and follow the changes of other devices", async () => {
    const account = await Account.register();
    const conversation = await branchedConversation(account);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).getByText("And the winds?").waitFor();
    await loadFurtherPages(page);
    await switchByKeyboardAndPointer(page, account, conversation);
    await followOtherDevices(page, account, conversation);
    await explainRefusedSwitch(page);
    await openDialog(page);
    await expectFocus(row(page, "Winds"));
    await renameInPlace(page, account, conversation);
    await keepUnseenName(page, account, conversation);
    await keepNameThatWasNotStored(page);
    await copyOnce(page, account);
    await visit.close();
  });

  test("43 fit on a phone and on a desktop in three languages, and the palette opens them", async () => {
    const account = await Account.register();
    const conversation = await branchedConversation(account);
    const narrow = { viewport: { ...phone, width: 320 }, hasTouch: true, isMobile: true };
    const mobile = await BrowserWindow.open(`/c/${conversation}`, account, narrow);
    await expectFit(mobile.page, account, "en", "a phone");
    await mobile.page.keyboard.press("Escape");
    await mobile.page.keyboard.press("Escape");
    await expectFit(mobile.page, account, "ar", "a phone");
    await mobile.close();
    const desktop = await BrowserWindow.open(`/c/${conversation}`, account);
    await expectFit(desktop.page, account, "ja", "a desktop");
    await desktop.close();
  });
});

/** Further pages are loaded on request. */
async function loadFurtherPages(page: Page): Promise<void> {
  await page.route(/\/branches\?/, (route) =>
    route.continue({ url: route.request().url().replace("limit=100", "limit=1") }),
  );
  await openDialog(page);
  const more = dialogOf(page).getByRole("button", { name: "Show more" });
  await more.waitFor();
  expect(await outline(page)).toEqual(["1 Tomorrow", "2 Next week", "3 Feet"]);
  await expectFocus(row(page, "Tomorrow"));
  await more.press("Enter");
  await row(page, "Winds").waitFor();
  await more.waitFor({ state: "hidden" });
  await page.unrouteAll();
  await page.keyboard.press("Escape");
  await dialogOf(page).waitFor({ state: "hidden" });
}

/** The branches are a tree, in which keys move, collapse and switch. */
async function switchByKeyboardAndPointer(page: Page, account: Account, conversation: string): Promise<void> {
  const [, , feet] = await branches(account, conversation);
  await openDialog(page);
  await expect.poll(() => outline(page)).toEqual(["1 Tomorrow", "2 Next week", "3 Feet", "2 Winds"]);
  await row(page, "Winds Active (now|.* ago) 4 messages Starts after message 2 And the winds").waitFor();
  await row(page, "Feet (now|.* ago) 6 messages Starts after message 4 In feet").waitFor();
  await row(page, "Tomorrow (now|.* ago) 4 messages How high").waitFor();
  expect(await page.locator("[role=treeitem][aria-current]").count()).toBe(1);
  await expectAccessibleInBothColorSchemes(page, "the branches");

  await expectFocus(row(page, "Winds"));
  for (const [key, name] of [
    ["Home", "Tomorrow"],
    ["ArrowRight", "Next week"],
    ["ArrowDown", "Feet"],
    ["End", "Winds"],
    ["ArrowUp", "Feet"],
    ["ArrowLeft", "Next week"],
  ] as const) {
    await page.keyboard.press(key);
    await expectFocus(row(page, name));
  }
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => outline(page)).toEqual(["1 Tomorrow", "2 Next week", "2 Winds"]);
  expect(await row(page, "Next week").getAttribute("aria-expanded")).toBe("false");
  await page.keyboard.press("ArrowRight");
  await row(page, "Feet").waitFor();
  await page.keyboard.press("Tab");
  await expectFocus(page.getByRole("button", { name: "Actions for “Next week”" }));
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("ArrowDown");
  await expectFocus(row(page, "Feet"));
  await page.keyboard.press("Enter");
  await dialogOf(page).waitFor({ state: "hidden" });
  await page.getByText("Switched to “Feet”.").waitFor();
  await messages(page).getByText("In feet?").waitFor();
  expect(await activeBranch(account, conversation)).toBe(feet!.branch_id);
  await expectFocus(menuButton(page));

  // A press on a row switches, too; the code of the dialog is loaded now.
  await openDialog(page);
  await expectFocus(row(page, "Feet"));
  await row(page, "Winds").click();
  await dialogOf(page).waitFor({ state: "hidden" });
  await messages(page).getByText("And the winds?").waitFor();
  await expectFocus(menuButton(page));
}

/** New branches of other devices appear, and a live answer prevents switching. */
async function followOtherDevices(page: Page, account: Account, conversation: string): Promise<void> {
  await openDialog(page);
  const path = await stored(account, conversation);
  await account.request("POST", `/conversations/${conversation}/branches`, {
    message_id: path.at(-2)!.message_id,
    mode: "edit",
    name: "Waves",
  });
  await row(page, "Waves Active").waitFor();
  expect(await outline(page)).toEqual(["1 Tomorrow", "2 Next week", "3 Feet", "2 Winds", "2 Waves"]);
  expect(await page.locator("[role=treeitem][aria-current]").count()).toBe(1);
  await rename(account, conversation, (await branches(account, conversation))[0]!, "Trunk");
  await row(page, "Trunk").waitFor();

  const paused = await pausedAnswer();
  await account.startTurn(paused.text, { conversation_id: conversation });
  const wait = dialogOf(page).getByText("To switch branches, wait for the answer to finish.");
  await wait.waitFor();
  const active = await activeBranch(account, conversation);
  await row(page, "Feet").press("Enter");
  await page.getByRole("button", { name: "Actions for “Feet”" }).press("Enter");
  const item = page.getByRole("menuitem", { name: "Switch to this branch" });
  await item.waitFor();
  expect(await item.getAttribute("aria-disabled")).toBe("true");
  await page.keyboard.press("Escape");
  await item.waitFor({ state: "hidden" });
  expect(await activeBranch(account, conversation)).toBe(active);
  await paused.release();
  await wait.waitFor({ state: "hidden" });
  await row(page, "Waves Active (now|.* ago) 4 messages").waitFor();
  await row(page, "Feet").press("Enter");
  await dialogOf(page).waitFor({ state: "hidden" });
  await messages(page).getByText("In feet?").waitFor();
}

/** A refused switch is explained, and the dialog stays. */
async function explainRefusedSwitch(page: Page): Promise<void> {
  await openDialog(page);
  const requests = await intercept(page, "PUT", /\/active-branch$/);
  await row(page, "Winds").press("Enter");
  await expect.poll(() => requests.length).toBe(1);
  await requests[0]!.abort();
  await page.getByRole("alert").getByText("Couldn't switch branches. Try again.").waitFor();
  await expectFocus(row(page, "Winds"));
  await row(page, "Winds").press("Enter");
  await expect.poll(() => requests.length).toBe(2);
  await requests[1]!.continue();
  await dialogOf(page).waitFor({ state: "hidden" });
}

async function renameInPlace(page: Page, account: Account, conversation: string): Promise<void> {
  const announcements = await recordAnnouncements(page);
  await page.keyboard.press("F2");
  await expectFocus(nameField(page));
  await nameField(page).fill("Not stored");
  await page.keyboard.press("Escape");
  await nameField(page).waitFor({ state: "hidden" });
  await expectFocus(row(page, "Winds"));
  await page.keyboard.press("F2");
  await nameField(page).fill("Storms");
  await page.keyboard.press("Enter");
  await expectFocus(row(page, "Storms"));
  expect((await branches(account, conversation))[3]!.name).toBe("Storms");
  const renamed = async () => (await announcements()).filter(({ text }) => text === "Branch renamed.");
  await expect.poll(renamed).toEqual([{ urgent: false, text: "Branch renamed." }]);
}

/** The name of another device is not overwritten unseen. */
async function keepUnseenName(page: Page, account: Account, conversation: string): Promise<void> {
  const feet = async () => (await branches(account, conversation))[2]!;
  await choose(page, "Feet", "Rename");
  await expectFocus(nameField(page));
  await nameField(page).fill("In feet");
  const refetched = page.waitForResponse(
    async (response) =>
      /\/branches\?/.test(response.url()) &&
      ((await response.json()) as { data: Branch[] }).data.some((one) => one.name === "Yards"),
  );
  await rename(account, conversation, await feet(), "Yards");
  await refetched;
  await nameField(page).press("Enter");
  await page.getByText("Another device renamed this branch to “Yards”. Save again to use your name.").waitFor();
  expect(await nameField(page).inputValue()).toBe("In feet");
  expect((await feet()).name).toBe("Yards");
  await expectFocus(nameField(page));
  await expectAccessible(page, "the editor of a name");
  await page.getByRole("button", { name: "Save" }).click();
  await expectFocus(row(page, "In feet"));
  expect((await feet()).name).toBe("In feet");

  // A branch without a name is named after its first message that differs.
  await page.keyboard.press("F2");
  await nameField(page).fill("");
  await page.keyboard.press("Enter");
  await expectFocus(row(page, "In feet\\? .*(now|ago) 6 messages"));
  expect((await feet()).name).toBe("");
}

/** A name that could not be stored stays in its field. */
async function keepNameThatWasNotStored(page: Page): Promise<void> {
  const requests = await intercept(page, "PATCH", /\/branches\//);
  await choose(page, "Storms", "Rename");
  await expectFocus(nameField(page));
  await nameField(page).fill("Gales");
  await page.keyboard.press("Enter");
  await expect.poll(() => requests.length).toBe(1);
  await requests[0]!.fetch(); // the service stores the name, and its response is lost
  await requests[0]!.abort();
  await page.getByText("Couldn't save the name. Try again.").waitFor();
  expect(await nameField(page).inputValue()).toBe("Gales");
  await nameField(page).press("Enter");
  await expect.poll(() => requests.length).toBe(2);
  await requests[1]!.continue();
  await expectFocus(row(page, "Gales"));
}

/** A branch is copied to a new conversation, once even after a lost response. */
async function copyOnce(page: Page, account: Account): Promise<void> {
  const requests = await intercept(page, "POST", /\/branches$/);
  await choose(page, "Next week", "Copy to a new conversation");
  await expect.poll(() => requests.length).toBe(1);
  await requests[0]!.fetch(); // the service creates the copy, and its response is lost
  await requests[0]!.abort();
  await page.getByText("No response yet. Try again: you'll get the same copy, not a second one.").waitFor();
  await choose(page, "Next week", "Copy to a new conversation");
  await expect.poll(() => requests.length).toBe(2);
  await requests[1]!.continue();
  await page.getByRole("heading", { level: 1, name: "Tides (copy)" }).waitFor();
  await messages(page).getByText("In metres?").waitFor();
  await page.getByText("This is the copy. The original is unchanged.").waitFor();
  const list = await account.read<{ data: { title: string }[] }>("/conversations");
  expect(list.data.map(({ title }) => title).sort()).toEqual(["Tides", "Tides (copy)"]);
}

/** Chooses the language, opens the dialog with the palette and expects that it fits. The dialog stays open. */
async function expectFit(page: Page, account: Account, language: "en" | "ar" | "ja", kind: string): Promise<void> {
  const { version: _, ...settings } = await account.read<Record<string, unknown>>("/account/settings");
  await account.request("PUT", "/account/settings", { ...settings, language });
  await messages(page).last().waitFor();
  await page.waitForFunction((wanted) => document.documentElement.lang === wanted, language);
  const label = { en: "Branches…", ar: "الفروع…", ja: "ブランチ…" }[language];
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").fill(label);
  await page.getByRole("option", { name: label }).click();
  await rowsOf(page).nth(3).waitFor();
  await expectFocus(row(page, "Winds"));
  const dialog = page.getByRole("dialog");
  const wider = (what: typeof dialog) => what.evaluate((element) => element.scrollWidth - element.clientWidth);
  expect(await wider(dialog)).toBeLessThanOrEqual(0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
  // In right-to-left languages the left key leads to the rows below.
  await page.keyboard.press("Home");
  await page.keyboard.press(language === "ar" ? "ArrowLeft" : "ArrowRight");
  await expectFocus(row(page, "Next week"));
  await page.keyboard.press("F2");
  await dialog.getByRole("textbox").waitFor();
  expect(await wider(dialog), "with the editor").toBeLessThanOrEqual(0);
  if (kind === "a phone")
    for (const control of await dialog.locator("button, input, [role=treeitem]").all()) {
      const { width, height } = (await control.boundingBox())!;
      expect(Math.min(width, height), (await control.getAttribute("aria-label")) ?? "").toBeGreaterThanOrEqual(44);
    }
  await expectAccessibleInBothColorSchemes(page, `the branches on ${kind}, ${language}`);
}
