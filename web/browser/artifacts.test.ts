// Tests of the panel with the artifacts of a conversation: every kind is shown, versions are compared, edited and restored, and a
// text is kept when another device has written a newer version.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, expectFocus, intercept, messages } from "./conversation-page";
import { Account, BrowserWindow, desktop, withBrowser } from "./harness";

withBrowser();

const panel = (page: Page) => page.getByRole("complementary", { name: "Artifacts" });
const button = (page: Page, name: string) => panel(page).getByRole("button", { name, exact: true });
const version = (page: Page) => panel(page).getByRole("combobox", { name: "Version", exact: true });
const frame = (page: Page) => panel(page).frameLocator("iframe");

interface Artifact {
  artifact_id: string;
  version: number;
}

/** Starts a conversation with an artifact of each of the kinds, newest last. */
async function write(...kinds: string[]): Promise<{ account: Account; conversation: string; artifact: string }> {
  const account = await Account.register();
  const directives = kinds.map((kind) => `artifact=${kind}`).join(" ");
  const conversation = await account.chat(`Write something. [[script tokens=5 ${directives}]]`);
  const { data } = await account.read<{ data: Artifact[] }>(`/conversations/${conversation}/artifacts`);
  return { account, conversation, artifact: data[0]!.artifact_id };
}

/** Writes a version as another device does. */
const put = (account: Account, artifact: string, base: number, content: string) =>
  account.request("PUT", `/artifacts/${artifact}`, { content }, { "If-Match": `"v${base}"` });

test("21 a page runs, its error goes into the composer, and its versions are edited, compared, restored and kept after a reload", async () => {
  const { account, conversation, artifact } = await write("html");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  const { page } = visit;
  await page.getByRole("link", { name: "Tides Page, version 1" }).press("Enter");
  await expectFocus(panel(page).getByRole("heading", { name: "Tides" }));
  await frame(page).getByRole("heading", { name: "Tides" }).waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "an artifact");

  // An edit; while it is typed, another device writes.
  await button(page, "Edit").press("Enter");
  const field = panel(page).getByRole("textbox", { name: "Content of Tides" });
  await expectFocus(field);
  await field.fill("<h1>Mine</h1>\n<script>missing()</script>\n");
  await put(account, artifact, 1, "<h1>Theirs</h1>\n");
  await panel(page).getByRole("status").getByText("Version 2 was saved in the meantime. Your text is kept.").waitFor();
  await panel(page).getByText("<h1>Theirs</h1>").waitFor();
  await page.reload();
  expect(await field.inputValue()).toBe("<h1>Mine</h1>\n<script>missing()</script>\n");
  await expectAccessibleOnDesktopAndPhone(page, "an edit with a newer version");
  // The newest version is another one when the request arrives, so nothing is overwritten.
  const requests = await intercept(page, "PUT", /\/artifacts\//);
  const save = button(page, "Save mine as the newest version");
  await save.press("Enter");
  await expect.poll(() => requests.length).toBe(1);
  await put(account, artifact, 2, "<h1>Again</h1>\n");
  await requests[0]!.continue();
  await panel(page).getByRole("alert").getByText("Not saved: there is a newer version.").waitFor();
  await panel(page).getByText("Version 3 was saved in the meantime. Your text is kept.").waitFor();
  await page.unrouteAll();
  await save.press("Enter");
  await frame(page).getByRole("heading", { name: "Mine" }).waitFor();
  expect(await version(page).inputValue()).toBe("4");

  // Its error is shown, and written into the composer.
  await panel(page).getByRole("alert").getByText("missing is not defined").waitFor();
  await button(page, "Fix this").press("Enter");
  await expectFocus(composer(page));
  expect(await composer(page).inputValue()).toMatch(
    /^“Tides” \(version 4\) reported an error\..*missing is not defined/s,
  );

  // The differences, and an older version that is restored.
  await button(page, "Changes").press("Enter");
  await panel(page).getByText("2 lines added, 1 line removed").waitFor();
  await panel(page).getByRole("combobox", { name: "Compared with" }).selectOption("1");
  await panel(page).locator("del").getByText('<p id="tide">').waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "the differences of two versions");
  await button(page, "Changes").press("Enter");
  await version(page).selectOption("1");
  await button(page, "Restore this version").press("Enter");
  await page.getByText("Restored as version 5.").waitFor();
  await frame(page).getByText("Low tide at six.").waitFor();
  const download = page.waitForEvent("download");
  await panel(page).getByRole("link", { name: "Download" }).press("Enter");
  expect((await download).suggestedFilename()).toBe("Tides.html");

  // What another device writes is shown at once.
  await put(account, artifact, 5, "<h1>Live</h1>\n");
  await frame(page).getByRole("heading", { name: "Live" }).waitFor();
  await button(page, "Close artifacts").press("Enter");
  await panel(page).waitFor({ state: "detached" });
  for (const error of visit.pageErrors.splice(0)) expect(error, "of the artifact").toContain("missing is not defined");
  await visit.close();
});

test("21 the panel lists the artifacts of a conversation and shows every kind, on a phone in front of the page", async () => {
  const { account, conversation } = await write("document", "code", "svg", "table", "diagram");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  const { page } = visit;
  await messages(page).nth(1).waitFor();
  await page.getByRole("button", { name: "5 artifacts" }).press("Enter");
  await panel(page).getByRole("listitem").nth(4).waitFor();
  await expectAccessibleOnDesktopAndPhone(page, "the list of artifacts");
  for (const [kind, expectShown] of Object.entries({
    Document: () => panel(page).getByRole("heading", { name: "Tides" }).nth(1).waitFor(),
    Code: () => panel(page).locator("[data-ink]").first().waitFor(),
    Image: () => frame(page).locator("svg path").waitFor({ state: "attached" }),
    Table: () => panel(page).getByRole("cell", { name: "06:40" }).waitFor(),
    Diagram: () => frame(page).getByText("High tide").waitFor(),
  })) {
    await panel(page).getByRole("button").filter({ hasText: kind }).press("Enter");
    await expectShown();
    if (kind === "Table") await expectAccessibleOnDesktopAndPhone(page, kind);
    await button(page, "All artifacts").press("Enter");
  }
  // Mermaid works without a policy of its own, which the frame does not let it create.
  const reports = visit.unexpectedRefusals.splice(0);
  expect(reports.filter((report) => !report.includes("'dompurify'"))).toEqual([]);
  // A search for its text finds it.
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox", { name: "Search" }).fill("06:40");
  await page.getByRole("option").filter({ hasText: "06:40" }).click();
  await panel(page).getByRole("cell", { name: "06:40" }).waitFor();
  await button(page, "All artifacts").press("Enter");
  // On a phone it covers the page, and Escape closes it.
  await page.setViewportSize({ ...desktop, width: 390 });
  const dialog = page.getByRole("dialog", { name: "Artifacts" });
  await dialog.getByRole("listitem").nth(4).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await visit.close();
});

test("a sign-out counts the texts that are not saved in other tabs, also after a reload, and discards them", async () => {
  const { account, conversation } = await write("html");
  const visit = await BrowserWindow.open(`/c/${conversation}`, account);
  const { page } = visit;
  const other = await visit.tab(`/c/${conversation}`);
  await other.getByRole("link", { name: "Tides Page, version 1" }).press("Enter");
  await button(other, "Edit").press("Enter");
  const field = panel(other).getByRole("textbox", { name: "Content of Tides" });
  const dialog = page.getByRole("dialog", { name: "Sign out now?" });
  const signOut = async () => {
    await page.getByRole("button", { name: "Account: Robin" }).press("Enter");
    await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
    await dialog.getByText(/^Your changes to 1 artifact aren't saved/).waitFor();
  };
  await field.fill("<h1>Mine</h1>\n");
  await signOut();
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
  await dialog.waitFor({ state: "hidden" });
  await button(other, "Close artifacts").press("Enter");
  await panel(other).waitFor({ state: "detached" });
  await other.reload(); // the panel is closed, but its text is stored
  await other.getByRole("link", { name: "Tides Page, version 1" }).waitFor();
  const locks = () => other.evaluate(async () => (await navigator.locks.query()).held!.map(({ name }) => name));
  await expect.poll(locks).toContainEqual(expect.stringMatching(/^turnstone-edit\//));
  await signOut();
  await dialog.getByRole("button", { name: "Sign out and discard" }).press("Enter");
  await other.getByLabel("Email").waitFor();
  expect(await other.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("Mine");
  await visit.close();
});
