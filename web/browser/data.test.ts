// Tests of "Your data" in the settings: the export of the account, the import of other exports, and the erasure of the
// account.
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { expectFocus, fast, intercept, recordAnnouncements, refusal, sidebar } from "./conversation-page";
import { Account, BrowserWindow, phone, url, withBrowser } from "./harness";

withBrowser();

const imports = (page: Page) => page.getByRole("list", { name: "Your imports" });
const chooseFile = (page: Page) => page.getByRole("button", { name: "Choose a file" });
const eraseDialog = (page: Page) => page.getByRole("dialog", { name: "Delete your account?" });

interface Import {
  import_id: string;
  state: string;
}

const listed = async (account: Account) => (await account.read<{ data: Import[] }>("/account/imports")).data;

/** Chooses a file as a user does, with the button. A file on the disk has only its path. */
async function choose(page: Page, name: string, content?: string): Promise<void> {
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), chooseFile(page).click()]);
  await chooser.setFiles(
    content === undefined ? name : { name, mimeType: "application/json", buffer: Buffer.from(content) },
  );
}

/** A conversation as ChatGPT exports it, with a question, an answer and an attachment. */
const exportedByChatGPT = (id: string, title: string) => ({
  id,
  title,
  create_time: 1_764_000_000,
  update_time: 1_764_000_060,
  current_node: "answer",
  mapping: {
    root: { id: "root", parent: null, children: ["question"], message: null },
    question: {
      id: "question",
      parent: "root",
      children: ["answer"],
      message: {
        id: "question",
        author: { role: "user" },
        create_time: 1_764_000_000,
        content: { content_type: "text", parts: ["Why are there two tides a day?"] },
        metadata: { attachments: [{ name: "chart.png" }] },
      },
    },
    answer: {
      id: "answer",
      parent: "question",
      children: [],
      message: {
        id: "answer",
        author: { role: "assistant" },
        create_time: 1_764_000_060,
        content: { content_type: "text", parts: ["The moon pulls on both sides of the Earth."] },
        metadata: {},
      },
    },
  },
});

/** Makes the service require a recent sign-in as if it were long ago, until the user has entered the password. */
async function requireReauthentication(page: Page): Promise<void> {
  let confirmed = false;
  page.on("response", (response) => {
    confirmed ||= response.url() === `${url}/auth/reauthenticate` && response.ok();
  });
  await page.route(/\/auth\/session$/, async (route) => {
    if (confirmed) return route.continue();
    const response = await route.fetch();
    const session = (await response.json()) as object;
    return route.fulfill({ response, json: { ...session, reauthenticated_until: null } });
  });
  await page.route(/\/account$/, async (route) =>
    confirmed || route.request().method() !== "DELETE"
      ? route.continue()
      : route.fulfill(refusal(403, "reauth_required", "This needs a recent sign-in.")),
  );
}

async function reauthenticate(page: Page, account: Account): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "Confirm it's you" });
  await dialog.getByLabel("Password", { exact: true }).fill(account.password);
  await dialog.getByRole("button", { name: "Confirm" }).click();
  await dialog.waitFor({ state: "hidden" });
}

describe("your data", () => {
  test("34 the account is exported and erased after confirming the password; then it cannot sign in", async () => {
    const account = await Account.register();
    await account.chat(`Hello! ${fast(5)}`);
    const visit = await BrowserWindow.open("/settings#data", account);
    await expectNoDownload(visit.page);
    await download(visit.page, account);
    await erase(visit, account);
    await visit.close();
  });

  test("34 conversations are imported with progress and a report, and a refusal says why", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings#data", account);
    const { page } = visit;
    await expectRefusedFiles(page);
    await importFromChatGPT(page);
    await importFileWithoutConversations(page, account);
    await cancelUpload(visit, account);
    await followRunningImport(page);
    await visit.close();
  });

  test("34 the dialog does not say that an account is erased that is not", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings#data", account, {
      viewport: phone,
      hasTouch: true,
      isMobile: true,
    });
    const { page } = visit;
    await page.getByRole("button", { name: "Delete account…" }).click();
    const dialog = eraseDialog(page);
    await dialog.getByLabel("Type your email to confirm").fill(account.email);
    const requests = await intercept(page, "DELETE", /\/account$/);
    for (const [answer, text] of [
      [refusal(503, "unavailable"), "No response, so your account may or may not be deleted."],
      [refusal(429, "rate_limited"), "The server didn't delete your account."],
    ] as const) {
      await dialog.getByRole("button", { name: "Delete account", exact: true }).click();
      await expect.poll(() => requests.length).toBe(1);
      await requests.pop()!.fulfill(answer);
      await dialog.getByText(text).waitFor();
    }
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await expectFocus(page.getByRole("button", { name: "Delete account…" }));
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    expect((await account.read<object>("/account/settings")) !== null).toBe(true);
    await visit.close();
  });
});

/** An export that the service cannot start is not announced as a download. */
async function expectNoDownload(page: Page): Promise<void> {
  const button = page.getByRole("button", { name: "Download", exact: true });
  await button.waitFor();
  const checks = await intercept(page, "GET", /\/auth\/session$/);
  const downloads: unknown[] = [];
  page.on("download", (one) => downloads.push(one));
  await button.click();
  await expect.poll(() => checks.length).toBe(1);
  await checks[0]!.fulfill(refusal(503, "unavailable"));
  await page.getByText("The server can't export your data right now.").waitFor();
  await button.click();
  await expect.poll(() => checks.length).toBe(2);
  await checks[1]!.abort();
  await page.getByText("Can't reach the server. Nothing was downloaded.").waitFor();
  expect(downloads).toEqual([]);
  await page.unrouteAll();
}

/** Downloads the export as a ZIP archive after the user has confirmed the password. */
async function download(page: Page, account: Account): Promise<void> {
  await requireReauthentication(page);
  await page.getByRole("button", { name: "Download", exact: true }).press("Enter");
  const downloaded = page.waitForEvent("download");
  await reauthenticate(page, account);
  const file = await downloaded;
  expect(file.suggestedFilename()).toMatch(/^turnstone-export-\d{4}-\d{2}-\d{2}\.zip$/);
  expect(await file.failure()).toBeNull();
  const archive = readFileSync(await file.path());
  expect(archive.subarray(0, 4).toString("latin1")).toBe("PK\u0003\u0004");
  expect(archive.includes("manifest.json")).toBe(true);
  await page.getByText("Your browser is downloading the export.").waitFor();
  await page.unrouteAll();
}

async function erase(visit: BrowserWindow, account: Account): Promise<void> {
  const { page } = visit;
  const other = await visit.tab("/");
  await page.getByRole("button", { name: "Delete account…" }).press("Enter");
  const dialog = eraseDialog(page);
  await expect
    .poll(() => dialog.getByRole("listitem").allInnerTexts())
    .toEqual(["1 conversation", "2 messages", "1 signed-in device"]);
  const confirm = dialog.getByRole("button", { name: "Delete account", exact: true });
  const field = dialog.getByLabel("Type your email to confirm");
  await expectFocus(field);
  await expectAccessibleInBothColorSchemes(page, "the dialog that erases the account");
  await field.fill("somebody@else.example");
  expect(await confirm.isDisabled()).toBe(true);

  // A conversation that was added meanwhile has to be confirmed as well.
  await account.request("POST", "/conversations", { title: "Tides" });
  await field.fill(account.email.toUpperCase());
  await field.press("Enter");
  await dialog.getByText("Something changed in the meantime.").waitFor();
  await dialog.getByText("2 conversations").waitFor();
  await requireReauthentication(page);
  await confirm.click();
  await reauthenticate(page, account);
  await page.getByText("Your account has been deleted. All devices are signed out").waitFor();
  await page.getByText(/^era_[a-z0-9]+$/).waitFor();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(new URL(page.url()).pathname).toBe("/");
  await expectAccessibleInBothColorSchemes(page, "the report of an erasure");
  await other.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await other.getByText("Your account has been deleted.").count()).toBe(0);
  await expect(account.read("/account/settings")).rejects.toThrow(": 401");

  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password", { exact: true }).fill(account.password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Wrong email or password.").waitFor();
}

/** The page says why the service refused a file. */
async function expectRefusedFiles(page: Page): Promise<void> {
  await chooseFile(page).waitFor();
  const uploads = await intercept(page, "POST", /\/account\/imports$/);
  for (const [answer, text] of [
    [refusal(409, "conflict"), "Another import is still in progress."],
    [refusal(413, "too_large"), "This file is too large: at most 2 GB can be imported."],
    [refusal(429, "rate_limited", "No.", { "Retry-After": "3600" }), "You've uploaded too much for now."],
    [refusal(400, "invalid_body"), "The file couldn't be read completely."],
    [refusal(503, "unavailable"), "The connection was lost before the server confirmed the upload."],
    [null, "The connection was lost before the server confirmed the upload."],
    [refusal(403, "origin"), "The server didn't accept the file."],
  ] as const) {
    await choose(page, "conversations.json", "[]");
    await expect.poll(() => uploads.length).toBe(1);
    await (answer === null ? uploads.pop()!.abort() : uploads.pop()!.fulfill(answer));
    await page.getByText(text).waitFor();
  }
  await page.unrouteAll();
}

/** Conversations of ChatGPT are imported, and the report says what was changed and skipped. */
async function importFromChatGPT(page: Page): Promise<void> {
  const announcements = await recordAnnouncements(page);
  const empty = { ...exportedByChatGPT("2", "Nothing"), mapping: {} };
  const content = JSON.stringify([exportedByChatGPT("1", "Two tides"), empty]);
  await choose(page, "conversations.json", content);
  const row = imports(page).getByRole("listitem").first();
  await row.getByText("Import finished").waitFor();
  await row.getByText("Import from ChatGPT").waitFor();
  await row.getByText("1 conversation imported").waitFor();
  await row.getByText("2 messages").waitFor();
  await row.getByText("1 conversation skipped").waitFor();
  await expect
    .poll(async () => (await announcements()).map(({ text }) => text))
    .toContain("Import finished. 1 conversation imported. 2 messages. 1 conversation skipped");
  const details = row.getByRole("button", { name: "What was skipped or changed" });
  await details.press("Enter");
  for (const text of [
    "Conversations skipped: they have no messages",
    "Attachments missing: the export only names them",
  ])
    await row.getByRole("listitem").filter({ hasText: text }).waitFor();
  await expectAccessibleInBothColorSchemes(page, "the report of an import");
  await row.getByRole("link", { name: "Two tides" }).waitFor();

  await sidebar(page).getByRole("link", { name: "Two tides" }).click();
  await page.getByText("The moon pulls on both sides of the Earth.").waitFor();

  // The same file again, after the user has visited another page.
  await page.goBack();
  await choose(page, "conversations.json", content);
  await expect.poll(() => imports(page).locator(":scope > li").count()).toBe(2);
  await row.getByText("No conversations imported").waitFor();
  await row.getByRole("button", { name: "What was skipped or changed" }).click();
  await row.getByText("Skipped: you already have them").first().waitFor();
}

/** A file without conversations has a report that says so, and an empty file is not sent. */
async function importFileWithoutConversations(page: Page, account: Account): Promise<void> {
  const before = (await listed(account)).length;
  await choose(page, "broken.json", '{"mapping": {"a": ');
  const row = imports(page).getByRole("listitem").first();
  await row.getByText("Nothing was imported: this file has no conversations that can be read.").waitFor();
  await row.getByRole("button", { name: "What was skipped or changed" }).click();
  await row.getByText("Parts skipped: damaged, or not a conversation").first().waitFor();
  await choose(page, "empty.json", "");
  await page.getByText("This file is empty.").waitFor();
  expect(await listed(account)).toHaveLength(before + 1);
}

/** An upload shows its progress and can be cancelled. */
async function cancelUpload({ page, context }: BrowserWindow, account: Account): Promise<void> {
  // At this rate the upload outlasts the test.
  const network = await context.newCDPSession(page);
  const limitUploads = (uploadThroughput: number) =>
    network.send("Network.emulateNetworkConditions", {
      offline: false,
      latency: 0,
      downloadThroughput: -1,
      uploadThroughput,
    });
  await network.send("Network.enable");
  await limitUploads(64 << 10);
  const folder = mkdtempSync(join(tmpdir(), "turnstone-upload-"));
  const file = join(folder, "large.json");
  writeFileSync(file, "");
  truncateSync(file, 40 << 20);
  const newest = async () => (await listed(account))[0]!.state;
  await choose(page, file);
  const progress = page.getByRole("progressbar", { name: "Uploading “large.json”" });
  await progress.waitFor();
  await page.getByText(/^[\d.]+ \w+ of 40 MB$/).waitFor();
  await expect.poll(newest).toBe("receiving");
  await expectAccessibleInBothColorSchemes(page, "an upload");
  await page.getByRole("button", { name: "Cancel upload" }).press("Enter");
  await page.getByText("Upload canceled. Nothing was imported.").waitFor();
  await progress.waitFor({ state: "hidden" });
  await expectFocus(chooseFile(page));
  await expect.poll(newest).toBe("cancelled");
  await imports(page).getByText("Canceled", { exact: true }).waitFor();
  await expect.poll(() => chooseFile(page).getAttribute("aria-disabled")).toBe("false");
  rmSync(folder, { recursive: true });
  await limitUploads(-1);
}

/** A running import shows its progress, can be cancelled, and is polled only until it has ended. */
async function followRunningImport(page: Page): Promise<void> {
  const open = {
    import_id: "imp_01h2xcejqtf2nbrexx3vqjhp41",
    state: "running",
    source: "claude",
    size: 1000,
    read_bytes: 250,
    imported: 3,
    skipped: 0,
    messages: 12,
    report: { reasons: {}, entries: [], more_entries: 0 },
    failure: null,
    created_at: new Date().toISOString(),
    finished_at: null as string | null,
  };
  let current: object = open;
  let polls = 0;
  await page.route(/\/account\/imports/, (route) => {
    if (route.request().method() === "DELETE")
      current = { ...open, state: "cancelled", finished_at: new Date().toISOString() };
    else if (route.request().url().includes(open.import_id)) polls++;
    else return route.fulfill({ json: { data: [current], next_cursor: null } });
    return route.fulfill({ json: current });
  });
  await page.clock.install();
  await page.reload();
  const row = imports(page).getByRole("listitem").first();
  await row.getByText("3 conversations imported").waitFor();
  const progress = row.getByRole("progressbar", { name: "Progress of the import" });
  await expect.poll(() => progress.getAttribute("aria-valuenow")).toBe("25");
  expect(await chooseFile(page).getAttribute("aria-disabled")).toBe("true");
  current = { ...open, read_bytes: 500 };
  await expect.poll(() => progress.getAttribute("aria-valuenow")).toBe("50");
  await row.getByRole("button", { name: /^Cancel the import started/ }).press("Enter");
  await row.getByText("Canceled", { exact: true }).waitFor();
  await page.getByText("Import canceled. What was already imported stays.").waitFor();
  await expectFocus(imports(page));
  expect(polls).toBeGreaterThan(1);
  const before = polls;
  await page.clock.fastForward(30_000);
  await page.evaluate(() => fetch("/health")); // after the requests of the timers that were due
  expect(polls).toBe(before);
}
