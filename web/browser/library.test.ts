// Tests of the library and of the files of a project: uploads, the list, and what can be done with a file.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { textFile, type ChosenFile } from "./chosen-file";
import { expectFocus, intercept, recordAnnouncements, refusal } from "./conversation-page";
import { FaultProxy } from "./fault-proxy";
import { Account, BrowserWindow, phone, withBrowser } from "./harness";

withBrowser();

const files = (page: Page) => page.getByRole("list", { name: "Files" });
const uploads = (page: Page) => page.getByRole("list", { name: "Uploads" });
const row = (page: Page, name: string) => files(page).getByRole("listitem").filter({ hasText: name });
const upload = (page: Page, name: string) => uploads(page).getByRole("listitem").filter({ hasText: name });
const names = (page: Page) =>
  files(page).getByRole("listitem").locator("div > button:first-child > bdi").allInnerTexts();

/** The EICAR test file, from pieces, so that no scanner reports this source. */
const testMalware = () =>
  textFile(
    "invoice.txt",
    ["X5O!P%@AP[4\\PZX54(P^)7CC)7}", "$EICAR", "-STANDARD-ANTIVIRUS-", "TEST-FILE!", "$H+H*"].join(""),
  );

/** Chooses files as a user does, with the button. */
async function choose(page: Page, ...chosen: ChosenFile[]): Promise<void> {
  await chooseFiles(page, chosen);
}

/** Chooses files of 4.6 MB on the disk, which the browser reads by itself. */
async function chooseLarge(page: Page, ...names: string[]): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "turnstone-library-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const paths = names.map((name) => join(folder, name));
  for (const path of paths) writeFileSync(path, "The tide comes in, and the tide goes out again.\n".repeat(100_000));
  await chooseFiles(page, paths);
}

async function chooseFiles(page: Page, chosen: ChosenFile[] | string[]): Promise<void> {
  const button = page.getByRole("button", { name: "Upload files" });
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), button.click()]);
  await chooser.setFiles(chosen);
}

interface StoredFile {
  file_id: string;
  filename: string;
  version: number;
  project_ids: string[];
}

const listed = async (account: Account) => (await account.read<{ data: StoredFile[] }>("/files")).data;

async function newProject(account: Account, name: string): Promise<string> {
  const made = await account.request("POST", "/projects", { name });
  return ((await made.json()) as { project_id: string }).project_id;
}

describe("uploads", () => {
  test("3 and 39 several files are sent at once; refused and cancelled ones do not block the others", async () => {
    const account = await Account.register();
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open("/library", account, { proxy: network.proxy });
    const { page } = visit;
    await uploadSeveral(page, account);
    await uploadDroppedFile(page);
    await recoverFromRefusals(page);
    await removeRefusedUploads(page);
    await sendThreeAtATime(page, account, network);
    await visit.close();
    await network.close();
  });

  test("3 after a lost connection the same upload is continued in place", async () => {
    const account = await Account.register();
    const network = await FaultProxy.start();
    const visit = await BrowserWindow.open("/library", account, { proxy: network.proxy });
    await continueInterruptedUpload(visit.page, account, network);
    await visit.close();
    await network.close();
  });
});

/** One file with malware and one of another type do not block the others. */
async function uploadSeveral(page: Page, account: Account): Promise<void> {
  await page.getByText("No files yet").waitFor();
  await expectAccessibleInBothColorSchemes(page, "an empty library");
  const heard = await recordAnnouncements(page);
  await choose(
    page,
    textFile("tides.txt"),
    testMalware(),
    textFile("moon.md"),
    textFile("surf.mp4", "0000", "video/mp4"),
    textFile("nothing.txt", ""),
  );
  await row(page, "tides.txt").waitFor();
  await row(page, "moon.md").waitFor();
  await upload(page, "invoice.txt").getByText("The scanner found malware in this file.").waitFor();
  await upload(page, "surf.mp4").getByText("Files of this type can't be uploaded.").waitFor();
  await upload(page, "nothing.txt").getByText("This file is empty.").waitFor();
  await expect.poll(() => uploads(page).getByRole("listitem").count()).toBe(3);
  await page.getByText("This server has only a test scanner: files aren't protected from malware.").waitFor();
  await expect
    .poll(async () => (await heard()).map((one) => one.text))
    .toContain("2 files uploaded. 3 files weren't uploaded.");
  expect((await listed(account)).map((one) => one.filename).sort()).toEqual(["moon.md", "tides.txt"]);
  await expectAccessibleInBothColorSchemes(page, "the library with refused uploads");
  await page.getByRole("button", { name: "Remove from the list: surf.mp4" }).press("Enter");
  await upload(page, "surf.mp4").waitFor({ state: "detached" });
  await expectFocus(page.getByRole("button", { name: "Upload files" }));
}

/** Files that are dropped on the page are uploaded, and the page says so while they are dragged. */
async function uploadDroppedFile(page: Page): Promise<void> {
  const drag = (type: "dragover" | "drop") =>
    page.evaluate((type) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["The tides.\n"], "dropped.txt"));
      document.body.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
    }, type);
  await drag("dragover");
  await page.getByText("Drop files to upload them").waitFor();
  await drag("drop");
  await row(page, "dropped.txt").waitFor();
  await page.getByText("Drop files to upload them").waitFor({ state: "detached" });
}

/** An expired upload is sent again in a new session; other refusals name their remedy. */
async function recoverFromRefusals(page: Page): Promise<void> {
  const creations = await intercept(page, "POST", /\/files\/uploads$/);
  const contents = await intercept(page, "PUT", /\/content$/);
  await choose(page, textFile("charts.txt"));
  const keys: string[] = [];
  const create = async () => {
    await expect.poll(() => creations.length).toBe(1);
    const [creation] = creations.splice(0);
    keys.push((await creation!.request().allHeaders())["idempotency-key"]!);
    return creation!;
  };
  const one = upload(page, "charts.txt");
  const again = (name: string) => one.getByRole("button", { name }).press("Enter");
  const quota = "You have 12 bytes of storage left, but the file is 24 bytes.";
  await (await create()).fulfill(refusal(413, "too_large", quota));
  await one.getByText("This file is too large.").waitFor();
  await one.getByText(quota).waitFor();
  await again("Upload again");
  await (await create()).fulfill(refusal(503, "unavailable"));
  await one.getByText("Files can't be uploaded right now.").waitFor();
  await again("Try again");
  await (await create()).fulfill(refusal(429, "rate_limited", "Slow down.", { "Retry-After": "3600" }));
  await one.getByText("Too many uploads for now.").waitFor();
  const wait = one.getByRole("button", { name: /^Try again in (60:00|59:\d\d)/ });
  await expect.poll(() => wait.getAttribute("aria-disabled")).toBe("true");
  // The same request was repeated after the 503, with its key; after the 413 it was another one.
  expect(new Set(keys).size).toBe(2);
  expect(keys[2]).toBe(keys[1]);
  await page.getByRole("button", { name: "Remove from the list: charts.txt" }).press("Enter");

  await choose(page, textFile("charts.txt"));
  await (await create()).continue();
  await expect.poll(() => contents.length).toBe(1);
  const first = contents.pop()!;
  await first.fulfill(refusal(410, "upload_expired"));
  await one.getByText("The upload wasn't finished in time.").waitFor();
  await again("Upload again");
  await (await create()).continue();
  await expect.poll(() => contents.length).toBe(1);
  const second = contents.pop()!;
  expect(second.request().url()).not.toBe(first.request().url());
  await second.continue();
  await row(page, "charts.txt").waitFor();
  await page.unrouteAll();
}

async function removeRefusedUploads(page: Page): Promise<void> {
  for (const name of ["invoice.txt", "nothing.txt"])
    await page.getByRole("button", { name: `Remove from the list: ${name}` }).press("Enter");
  await uploads(page).waitFor({ state: "detached" });
}

/** At most three files are sent at a time, with progress; a cancelled one is cancelled on the server. */
async function sendThreeAtATime(page: Page, account: Account, network: FaultProxy): Promise<void> {
  network.holdBodies();
  const created = page.waitForResponse((one) => one.url().endsWith("/files/uploads") && one.status() === 201);
  await chooseLarge(page, "a.txt", "b.txt", "c.txt", "d.txt");
  const { upload_id } = (await (await created).json()) as { upload_id: string };
  for (const name of ["a.txt", "b.txt", "c.txt"]) {
    const progress = page.getByRole("progressbar", { name: `Uploading ${name}` });
    await expect.poll(async () => Number(await progress.getAttribute("aria-valuenow"))).toBeGreaterThan(0);
  }
  await upload(page, "d.txt").getByText("Waiting").waitFor();
  await upload(page, "a.txt")
    .getByText(/ of 4\.6 MB$/)
    .waitFor();
  await expectAccessibleInBothColorSchemes(page, "the library while files are sent");
  const { filename } = await account.read<{ filename: string }>(`/files/uploads/${upload_id}`);
  await page.getByRole("button", { name: `Cancel upload: ${filename}` }).press("Enter");
  await upload(page, filename).waitFor({ state: "detached" });
  await expectFocus(page.getByRole("button", { name: "Upload files" }));
  await page.getByRole("progressbar", { name: "Uploading d.txt" }).waitFor();
  expect(await account.read(`/files/uploads/${upload_id}`)).toMatchObject({ state: "cancelled" });
  network.release();
  await uploads(page).waitFor({ state: "detached" });
  await expect
    .poll(() => names(page).then((found) => found.filter((name) => /^[a-d]\.txt$/.test(name)).sort()))
    .toEqual(["a.txt", "b.txt", "c.txt", "d.txt"].filter((name) => name !== filename));
}

async function continueInterruptedUpload(page: Page, account: Account, network: FaultProxy): Promise<void> {
  await page.getByText("No files yet").waitFor();
  network.holdBodies();
  const sessions: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "PUT") sessions.push(request.url());
  });
  await chooseLarge(page, "tides.txt");
  const progress = page.getByRole("progressbar", { name: "Uploading tides.txt" });
  await expect.poll(async () => Number(await progress.getAttribute("aria-valuenow"))).toBeGreaterThan(0);
  network.cut();
  await upload(page, "tides.txt").getByText("The connection was lost.").waitFor();
  network.release();
  network.restore();
  await upload(page, "tides.txt").getByRole("button", { name: "Try again" }).press("Enter");
  await row(page, "tides.txt").waitFor();
  expect(sessions.length).toBe(2);
  expect(sessions[1]).toBe(sessions[0]);
  expect((await listed(account)).length).toBe(1);
}

describe("the library", () => {
  test("30 the list can be searched, filtered, sorted, changed and downloaded, and follows other devices", async () => {
    const account = await Account.register();
    await account.storeFile("moon.txt", "The longest text of all of them, although the page has more markup.\n");
    await account.storeFile("data.html", "<!doctype html><html><body>A page</body></html>\n");
    await account.storeFile("tides.txt", "short\n");
    const visit = await BrowserWindow.open("/library", account);
    const other = await BrowserWindow.open("/library", account);
    const { page } = visit;
    await findAndDownload(page, other.page);
    await renameFile(page, other.page, account);
    await deleteFile(page, other.page);
    await other.close();
    await explainDeletionElsewhere(page, account);
    await loadNextPage(page, account);
    await visit.close();
  });
});

async function findAndDownload(page: Page, other: Page): Promise<void> {
  await expect.poll(() => names(page)).toEqual(["tides.txt", "data.html", "moon.txt"]);
  await expect.poll(() => names(other)).toEqual(["tides.txt", "data.html", "moon.txt"]);
  await page.getByLabel("Sort by").selectOption("Name");
  await expect.poll(() => names(page)).toEqual(["data.html", "moon.txt", "tides.txt"]);
  await page.getByLabel("Sort by").selectOption("Largest first");
  await expect.poll(() => names(page)).toEqual(["moon.txt", "data.html", "tides.txt"]);
  await page.getByLabel("Kind").selectOption("Text and code");
  await expect.poll(() => names(page)).toEqual(["moon.txt", "tides.txt"]);
  await page.getByLabel("Search by name").fill("TIDE");
  await expect.poll(() => names(page)).toEqual(["tides.txt"]);
  await page.getByLabel("Search by name").fill("no such file");
  await page.getByText("No files match.").waitFor();
  await page.getByRole("button", { name: "Show all files" }).press("Enter");
  await expect.poll(async () => (await names(page)).length).toBe(3);

  const [download] = await Promise.all([
    page.waitForEvent("download"),
    row(page, "tides.txt").getByRole("link", { name: "Download: tides.txt" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("tides.txt");
  expect(readFileSync(await download.path(), "utf8")).toBe("short\n");
}

async function renameFile(page: Page, other: Page, account: Account): Promise<void> {
  await page.getByRole("button", { name: "Actions: tides.txt" }).press("Enter");
  await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
  const name = page.getByRole("dialog", { name: "Rename file" }).getByLabel("Name");
  await expectFocus(name);
  // Another device renames it first.
  const { file_id } = (await listed(account)).find((one) => one.filename === "tides.txt")!;
  await account.request("PATCH", `/files/${file_id}`, { filename: "waves.txt" });
  await name.fill("currents.txt");
  await name.press("Enter");
  await page.getByText("Another device changed this file. Its name is now “waves.txt”.").waitFor();
  await expectAccessibleInBothColorSchemes(page, "the dialog that renames a file");
  await name.press("Enter");
  await row(page, "currents.txt").waitFor();
  await row(other, "currents.txt").waitFor();
  await expectFocus(page.getByRole("button", { name: "Actions: currents.txt" }));
}

async function deleteFile(page: Page, other: Page): Promise<void> {
  await page.getByRole("button", { name: "Actions: currents.txt" }).press("Enter");
  await page.getByRole("menuitem", { name: "Delete" }).press("Enter");
  const question = page.getByRole("dialog", { name: "Delete “currents.txt”?" });
  await question.getByText("Deletes the file on all devices. You can't undo this.").waitFor();
  await expectAccessibleInBothColorSchemes(page, "the dialog that deletes a file");
  await question.getByRole("button", { name: "Delete" }).press("Enter");
  await row(page, "currents.txt").waitFor({ state: "detached" });
  await row(other, "currents.txt").waitFor({ state: "detached" });
  await expectFocus(page.getByRole("button", { name: "Upload files" }));
}

/** The dialog of a file that another device deletes stays and explains it. */
async function explainDeletionElsewhere(page: Page, account: Account): Promise<void> {
  await account.storeFile("tides.txt");
  await row(page, "tides.txt").waitFor();
  const before = await names(page);
  await page.getByRole("button", { name: "Actions: tides.txt" }).press("Enter");
  await page.getByRole("menuitem", { name: "Rename" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Rename file" });
  await dialog.getByLabel("Name").fill("currents.txt");
  const { file_id } = (await listed(account)).find((one) => one.filename === "tides.txt")!;
  await account.request("DELETE", `/files/${file_id}`);
  await expect.poll(() => page.locator("[data-menu-of]").count()).toBe(before.length - 1);
  await dialog.getByLabel("Name").press("Enter");
  await dialog.getByText("This file was deleted on another device.").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  expect(await names(page)).toEqual(before.filter((name) => name !== "tides.txt"));
}

/** The next page of a long list is loaded at its end. */
async function loadNextPage(page: Page, account: Account): Promise<void> {
  const before = (await listed(account)).length;
  // Without the page, which would load the list again after each file.
  await page.goto(new URL("/health", page.url()).href);
  for (let at = 0; at < 55; at++) await account.storeFile(`file ${String(at).padStart(2, "0")}.txt`);
  await page.goto(new URL("/library", page.url()).href);
  await row(page, "file 54.txt").waitFor();
  expect((await names(page)).length).toBe(50);
  await row(page, "file 05.txt").scrollIntoViewIfNeeded();
  await expect.poll(async () => (await names(page)).length).toBe(before + 55);
}

describe("the files of a project", () => {
  test("29 a file is added to a project and removed from it, from the library and on the page of the project", async () => {
    const account = await Account.register();
    const project = await newProject(account, "Coast");
    await account.storeFile("tides.txt");
    const visit = await BrowserWindow.open("/library", account, { viewport: phone, hasTouch: true, isMobile: true });
    const { page } = visit;
    await page.getByRole("button", { name: "Actions: tides.txt" }).press("Enter");
    await page.getByRole("menuitem", { name: "Projects…" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Projects with “tides.txt”" });
    await dialog.getByRole("checkbox", { name: "Coast" }).check();
    await expect.poll(async () => (await listed(account))[0]!.project_ids).toEqual([project]);
    await expectAccessibleInBothColorSchemes(page, "the projects of a file");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await row(page, "tides.txt").getByRole("link", { name: "Coast" }).click();
    await page.waitForURL(`**/p/${project}`);
    await page.getByRole("heading", { name: "Coast", level: 1 }).waitFor(); // the library has the same row
    await row(page, "tides.txt").waitFor();
    await expectAccessibleInBothColorSchemes(page, "a project with a file");
    await page.getByRole("button", { name: "Remove from project: tides.txt" }).press("Enter");
    await row(page, "tides.txt").waitFor({ state: "detached" });
    expect((await listed(account))[0]!.project_ids).toEqual([]);

    await page.getByRole("button", { name: "Add from library" }).press("Enter");
    const adding = page.getByRole("dialog", { name: "Add files from your library" });
    await adding.getByRole("button", { name: "Add tides.txt" }).press("Enter");
    await adding.getByRole("button", { name: "Added tides.txt" }).waitFor();
    await expectAccessibleInBothColorSchemes(page, "the dialog that adds files");
    await page.keyboard.press("Escape");
    await row(page, "tides.txt").waitFor();

    await choose(page, textFile("moon.txt"));
    await row(page, "moon.txt").waitFor();
    expect((await listed(account)).map((one) => one.project_ids)).toEqual([[project], [project]]);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0);
    await visit.close();
  });
});
