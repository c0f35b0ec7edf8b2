// Tests of shared links and of the usage section: a share is created, opened without a session, listed and revoked; and
// the tokens that were used are displayed with the budget.
import { readFileSync } from "node:fs";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { expectFocus, fast, intercept, pausedAnswer, recordAnnouncements, refusal } from "./conversation-page";
import { Account, BrowserWindow, phone, sharedAccount, url, withBrowser } from "./harness";

withBrowser();

const shareDialog = (page: Page) => page.getByRole("dialog", { name: "Share this conversation" });
const sharedLinks = (page: Page) => page.getByRole("list", { name: "Shared links" });
const menuButton = (page: Page) => page.getByRole("button", { name: "Actions for this conversation" });
/** The path of a share: the service writes its own address into the link. */
const pathOf = (link: string) => new URL(link).pathname;

interface Share {
  share_id: string;
  title: string;
  message_count: number;
  created_at: string;
  expires_at: string;
}

const shares = async (account: Account) => (await account.read<{ data: Share[] }>("/shares")).data;
/** Returns the account of this file without the shares of earlier tests. */
async function accountWithoutShares(): Promise<Account> {
  const account = await sharedAccount();
  for (const { share_id } of await shares(account)) await account.request("DELETE", `/shares/${share_id}`);
  return account;
}

const days = ({ created_at, expires_at }: Share) => (Date.parse(expires_at) - Date.parse(created_at)) / 86_400_000;

/** The title comes first, so that the service generates none, whose tokens would be counted at any later time. */
async function titledConversation(
  account: Account,
  title: string,
  files: readonly string[] = [],
  script = fast(5),
): Promise<string> {
  const response = await account.request("POST", "/conversations", { title });
  const { conversation_id } = (await response.json()) as { conversation_id: string };
  for (const name of files) await account.storeFile(name);
  const { data } = await account.read<{ data: { file_id: string; filename: string }[] }>("/files");
  const input = [
    { type: "text", text: `How many tides are there? ${script}` },
    ...data.filter(({ filename }) => files.includes(filename)).map(({ file_id }) => ({ type: "file", file_id })),
  ];
  return account.chat("", { conversation_id, input });
}

async function openDialog(page: Page): Promise<void> {
  await menuButton(page).press("Enter");
  await page.getByRole("menuitem", { name: "Share…" }).press("Enter");
  await shareDialog(page).waitFor();
}

describe("sharing", () => {
  test("33 a link is created by keyboard, opens without a session, and shows nothing after it was revoked", async () => {
    const account = await accountWithoutShares();
    const script = "[[script tokens=5 artifact=table artifact=html]]";
    const conversation = await titledConversation(account, "Tides", ["private.txt", "tides.txt"], script);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await visit.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
    await openDialog(page);
    const dialog = shareDialog(page);
    await dialog.getByText("2 messages", { exact: true }).waitFor();
    await dialog.getByText("Your name, reasoning and tool calls are left out.").waitFor();
    await dialog.getByText("Nothing is shared.").waitFor();
    await dialog.getByRole("button", { name: "Preview the messages" }).press("Enter");
    await dialog.getByRole("region", { name: "Preview the messages" }).getByText("How many tides").waitFor();
    await dialog.getByRole("region", { name: "Preview the messages" }).getByText("2 files").waitFor();
    const files = dialog.getByRole("group", { name: "Files to include" });
    expect(await files.getByRole("checkbox", { checked: true }).count()).toBe(0);
    await files.getByRole("checkbox", { name: "tides.txt" }).press("Space");
    const artifacts = dialog.getByRole("group", { name: "Artifacts to include" });
    expect(await artifacts.getByRole("checkbox", { checked: true }).count()).toBe(0);
    await artifacts.getByRole("checkbox", { name: /Table, version 1/ }).press("Space");
    await dialog.getByRole("radio", { name: "30 days" }).press("ArrowLeft");
    await expect.poll(() => dialog.getByRole("radio", { name: "7 days" }).isChecked()).toBe(true);
    await expectAccessibleInBothColorSchemes(page, "the share dialog");
    const announcements = await recordAnnouncements(page);
    await dialog.getByRole("button", { name: "Create link" }).press("Enter");
    await expectFocus(dialog.getByRole("button", { name: "Copy" }));
    const link = await dialog.getByLabel("Link", { exact: true }).inputValue();
    await page.keyboard.press("Enter");
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe(link);
    await expect
      .poll(async () => (await announcements()).filter(({ urgent }) => !urgent).map(({ text }) => text))
      .toEqual(["Link created. Copy it now: it won't be shown again.", "Link copied."]);
    expect((await shares(account)).map((share) => [share.title, share.message_count, days(share)])).toEqual([
      ["Tides", 2, 7],
    ]);
    await sharedLinks(page).getByText("1 file", { exact: true }).waitFor();
    await sharedLinks(page).getByText("1 artifact", { exact: true }).waitFor();

    const reader = await BrowserWindow.open(pathOf(link));
    await reader.page.getByRole("heading", { name: "Tides" }).waitFor();
    await reader.page.getByText("How many tides are there?").waitFor();
    expect(await reader.page.locator(".files li").allInnerTexts()).toEqual([
      "tides.txt 24 bytes",
      "File not shared",
      "Tides Table · 39 bytes",
    ]);
    await expectAccessibleInBothColorSchemes(reader.page, "a shared page with files and an artifact");
    const [table] = await Promise.all([
      reader.page.waitForEvent("download"),
      reader.page.getByRole("article").getByRole("link", { name: "Tides", exact: true }).click(), // in the answer
    ]);
    expect(table.suggestedFilename()).toBe("Tides.csv");
    expect(readFileSync(await table.path(), "utf8")).toBe("Shore,Low tide\r\nNorth,06:10\r\nSouth,06:40\r\n");
    const [download] = await Promise.all([
      reader.page.waitForEvent("download"),
      reader.page.getByRole("link", { name: "tides.txt" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("tides.txt");
    expect(readFileSync(await download.path(), "utf8")).toBe("The tides of tides.txt.\n");
    const address = download.url();

    await expectAccessibleInBothColorSchemes(page, "the share dialog with a link");
    await sharedLinks(page)
      .getByRole("button", { name: /^Revoke the link to “Tides”/ })
      .press("Enter");
    const question = page.getByRole("dialog", { name: "Revoke this link?" });
    await expectFocus(question.getByRole("button", { name: "Cancel" }));
    await question.getByRole("button", { name: "Revoke" }).press("Enter");
    await dialog.getByText("Nothing is shared.").waitFor();
    await expect.poll(async () => (await announcements()).at(-1)?.text).toBe("Link revoked.");
    expect(await dialog.getByLabel("Link", { exact: true }).count()).toBe(0);
    const answer = await reader.page.reload();
    expect(answer?.status()).toBe(404);
    await reader.page.getByText("This share is not available").waitFor();
    expect((await fetch(address)).status).toBe(404);
    await reader.close();

    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await expectFocus(menuButton(page));
    await visit.close();
  });

  test("11 after a lost response, trying again returns the same link", async () => {
    const account = await accountWithoutShares();
    const visit = await BrowserWindow.open(`/c/${await titledConversation(account, "Tides")}`, account);
    const { page } = visit;
    const requests = await intercept(page, "POST", /\/shares$/);
    await openDialog(page);
    const dialog = shareDialog(page);
    const create = dialog.getByRole("button", { name: "Create link" });
    await create.click();
    await expect.poll(() => requests.length).toBe(1);
    await requests[0]!.fetch(); // the service creates the share, and its response is lost
    await requests[0]!.abort();
    await dialog.getByText("No response yet. Try again: you'll get the same link, not a second one.").waitFor();
    await page.keyboard.press("Escape");
    await openDialog(page);
    await create.click();
    await expect.poll(() => requests.length).toBe(2);
    await requests[1]!.continue();
    await dialog.getByLabel("Link", { exact: true }).waitFor();
    const keys = requests.map((route) => route.request().headers()["idempotency-key"]);
    expect(keys[0]).toBe(keys[1]);
    expect(await shares(account)).toHaveLength(1);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await visit.close();
  });

  test("33 the dialog says why a conversation cannot be shared", async () => {
    const account = await accountWithoutShares();
    const made = await account.request("POST", "/conversations", { title: "Empty" });
    const { conversation_id: empty } = (await made.json()) as { conversation_id: string };
    const tides = await titledConversation(account, "Tides");
    const visit = await BrowserWindow.open(`/c/${empty}`, account);
    const { page } = visit;
    await openDialog(page);
    const dialog = shareDialog(page);
    await dialog.getByText("There's no finished message to share yet.").waitFor();
    expect(await dialog.getByRole("button", { name: "Create link" }).count()).toBe(0);
    await expectAccessibleInBothColorSchemes(page, "the share dialog of an empty conversation");
    await page.keyboard.press("Escape");

    await page.goto(`${url}/c/${tides}`);
    const requests = await intercept(page, "POST", /\/shares$/);
    await openDialog(page);
    for (const [code, text] of [
      ["turn_in_progress", "An answer is still in progress. Try again when it's finished."],
      ["too_many_shares", "You've reached the limit of shared links. Revoke one in the settings, then try again."],
    ] as const) {
      await dialog.getByRole("button", { name: "Create link" }).click();
      await expect.poll(() => requests.length).toBe(1);
      await requests.pop()!.fulfill(refusal(409, code));
      await dialog.getByText(text).waitFor();
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await visit.close();
  });

  test("33 the messages of an answer in progress are not in the preview", async () => {
    const account = await accountWithoutShares();
    const conversation = await titledConversation(account, "Tides");
    const paused = await pausedAnswer();
    await account.startTurn(paused.text, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    await openDialog(visit.page);
    await shareDialog(visit.page).getByText("3 messages", { exact: true }).waitFor();
    await visit.page.keyboard.press("Escape");
    await shareDialog(visit.page).waitFor({ state: "hidden" });
    await paused.release();
    await visit.close();
  });

  test("33 the palette opens the dialog, and the settings list the links of all conversations", async () => {
    const account = await accountWithoutShares();
    const tides = await titledConversation(account, "Tides");
    for (const title of ["Charts", "Winds"])
      await account.request("POST", `/conversations/${await titledConversation(account, title)}/shares`, {});
    const visit = await BrowserWindow.open(`/c/${tides}`, account);
    const { page } = visit;
    await menuButton(page).waitFor();
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox").fill("Share");
    await page.getByRole("option", { name: "Share…" }).click();
    await shareDialog(page).getByRole("button", { name: "Create link" }).click();
    await shareDialog(page).getByLabel("Link", { exact: true }).waitFor();

    await page.goto(`${url}/settings#shares`);
    const titles = () => sharedLinks(page).getByRole("link").allInnerTexts();
    await expect.poll(titles).toEqual(["Tides", "Winds", "Charts"]);
    await sharedLinks(page).getByText("Not opened yet").first().waitFor();
    await expectAccessibleInBothColorSchemes(page, "the shared links");
    await sharedLinks(page)
      .getByRole("button", { name: /“Winds”/ })
      .click();
    const question = page.getByRole("dialog", { name: "Revoke this link?" });
    await expectAccessibleInBothColorSchemes(page, "the question before a link is revoked");
    await question.getByRole("button", { name: "Revoke" }).click();
    await expect.poll(titles).toEqual(["Tides", "Charts"]);
    await sharedLinks(page)
      .getByRole("button", { name: /“Charts”/ })
      .waitFor();

    // Another device revokes one: the feed reports it.
    const [newest] = await shares(account);
    await account.request("DELETE", `/shares/${newest!.share_id}`);
    await expect.poll(titles).toEqual(["Charts"]);
    await sharedLinks(page).getByRole("link", { name: "Charts" }).click();
    await page.getByRole("heading", { level: 1, name: "Charts" }).waitFor();
    await visit.close();
  });

  test("33 a link that could not be revoked stays in the list, with a notice", async () => {
    const account = await accountWithoutShares();
    await account.request("POST", `/conversations/${await titledConversation(account, "Tides")}/shares`, {});
    const visit = await BrowserWindow.open("/settings#shares", account);
    const { page } = visit;
    const requests = await intercept(page, "DELETE", /\/shares\//);
    await sharedLinks(page)
      .getByRole("button", { name: /“Tides”/ })
      .click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await expect.poll(() => requests.length).toBe(1);
    await requests[0]!.abort();
    await page.getByText("Couldn't revoke the link. It may still work. Try again.").waitFor();
    await sharedLinks(page).getByRole("link", { name: "Tides" }).waitFor();
    await visit.close();
  });
});

/** Adds a budget to the usage that the service returns to a page. */
async function withBudget(page: Page, budget: object): Promise<void> {
  await page.route(/\/usage\?/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), budget } });
  });
}

/** Opens the usage of the account as a page shows it that has a budget. */
async function openBudget(visit: BrowserWindow): Promise<void> {
  const { page } = visit;
  const reset = new Date(Date.UTC(2026, 0, 31)).toISOString();
  await withBudget(page, { limit: 100_000, used: 12_345, reserved: 500, resets_at: reset });
  const address = `${url}/settings#usage`;
  await (page.url() === address ? page.reload() : page.goto(address));
  await page.getByText("12,345 of 100,000 tokens used today").waitFor();
  await page.getByText("Answers in progress may use another 500.").waitFor();
  await page.getByRole("img", { name: /^Bar chart: tokens by day/ }).waitFor();
  await page.getByRole("button", { name: "Show as a table" }).click();
}

/** Expects that the tables show the tokens of the only answer of the account. */
async function expectTables(page: Page, account: Account): Promise<void> {
  const rows = (name: string) => page.getByRole("table", { name }).getByRole("row").allInnerTexts();
  const [{ key, turns, input_tokens, output_tokens }] = (
    await account.read<{
      data: [{ key: string; turns: number; input_tokens: number; output_tokens: number }];
    }>("/usage")
  ).data;
  const day = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" }).format(new Date(key));
  const numbers = [turns, input_tokens, output_tokens].map((count) => count.toLocaleString("en"));
  await expect.poll(() => rows("Tokens by day")).toEqual(["Day\tAnswers\tInput\tOutput", [day, ...numbers].join("\t")]);
  await expect.poll(async () => (await rows("Tokens by conversation"))[1]).toMatch(/^Tides\s+1\s/);
  expect((await rows("Tokens by profile")).length).toBeGreaterThan(1);
}

test("the settings show that nothing was used and that there is no limit, or the budget and the tokens by day, profile and conversation", async () => {
  const account = await Account.register();
  const laptop = await BrowserWindow.open("/settings#usage", account);
  await laptop.page.getByText("No tokens used in the last 30 days.").waitFor();
  await laptop.page.getByText("There's no daily limit on this server.").waitFor();

  await titledConversation(account, "Tides");
  const mobile = await BrowserWindow.open("/health", account, { viewport: phone, hasTouch: true, isMobile: true });
  for (const visit of [laptop, mobile]) {
    const { page } = visit;
    await openBudget(visit);
    await expectTables(page, account);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await expectAccessibleInBothColorSchemes(page, visit === laptop ? "usage-1280" : "usage-390");
    await visit.close();
  }
});
