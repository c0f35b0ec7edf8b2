// Tests of selecting several conversations: archiving, moving and deleting them with one action that can be undone.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { expectFocus, intercept, pausedAnswer, recordAnnouncements, refusal, sidebar } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const links = (page: Page) => sidebar(page).locator("a[data-conversation]");
const boxes = (page: Page) => sidebar(page).getByRole("checkbox");
const box = (page: Page, title: string) => sidebar(page).getByRole("checkbox", { name: title });
const toolbar = (page: Page) => page.getByRole("group", { name: "Selected conversations" });
const action = (page: Page, name: string) => toolbar(page).getByRole("button", { name, exact: true });
const selected = (page: Page) => sidebar(page).getByRole("checkbox", { checked: true }).allInnerTexts();

/** Registers an account with conversations of these titles; the list has the last one first. */
async function accountWith(...titles: string[]): Promise<{ account: Account; ids: Record<string, string> }> {
  const account = await Account.register();
  const ids: Record<string, string> = {};
  for (const title of titles) {
    const response = await account.request("POST", "/conversations", { title });
    ids[title] = ((await response.json()) as { conversation_id: string }).conversation_id;
  }
  return { account, ids };
}

/** Opens the page and starts to select with the menu of a conversation. */
async function openSelecting(account: Account, title: string): Promise<{ visit: BrowserWindow; page: Page }> {
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await links(page).filter({ hasText: title }).hover();
  await page.getByRole("button", { name: `Actions for “${title}”` }).click();
  await page.getByRole("menuitem", { name: "Select", exact: true }).click();
  await toolbar(page).getByText("1 selected").waitFor();
  return { visit, page };
}

const archivedAt = async (account: Account, id: string) =>
  (await account.read<{ archived_at: string | null }>(`/conversations/${id}`)).archived_at;

const exists = (account: Account, id: string) =>
  account.read(`/conversations/${id}`).then(
    () => true,
    () => false,
  );

describe("several conversations", () => {
  test("26 a range is selected with Shift, archived with one action, and brought back with Undo", async () => {
    const { account, ids } = await accountWith("Tides", "Charts", "Winds", "Stars", "Moons");
    const { visit, page } = await openSelecting(account, "Stars");
    const announcements = await recordAnnouncements(page);
    expect(await boxes(page).allInnerTexts()).toEqual(["Moons", "Stars", "Winds", "Charts", "Tides"]);
    await box(page, "Charts").click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("3 selected").waitFor();
    expect(await selected(page)).toEqual(["Stars", "Winds", "Charts"]);
    await box(page, "Winds").click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("2 selected").waitFor();
    await box(page, "Charts").click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("3 selected").waitFor();
    await action(page, "Archive").click();
    await expect.poll(() => links(page).allInnerTexts()).toEqual(["Moons", "Tides"]);
    await page.getByText("3 conversations archived").hover(); // it stays until "Undo" is pressed
    expect((await announcements()).map(({ text }) => text)).toContain("3 selected");
    for (const title of ["Stars", "Winds", "Charts"]) expect(await archivedAt(account, ids[title]!)).not.toBeNull();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => links(page).allInnerTexts()).toEqual(["Moons", "Stars", "Winds", "Charts", "Tides"]);
    await expect.poll(() => archivedAt(account, ids["Winds"]!)).toBeNull();
    await visit.close();
  });

  test("26 a click with Ctrl or Cmd opens a conversation in another tab, and a click with Shift selects it", async () => {
    const { account, ids } = await accountWith("Tides", "Charts");
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const link = links(page).filter({ hasText: "Tides" });
    for (const open of [
      () => link.click({ modifiers: ["ControlOrMeta"] }),
      () => link.press("ControlOrMeta+Enter"),
      () => link.click({ button: "middle" }),
    ]) {
      const [tab] = await Promise.all([visit.context.waitForEvent("page"), open()]);
      await tab.waitForURL(`**/c/${ids["Tides"]}`);
      await tab.close();
    }
    expect(new URL(page.url()).pathname).toBe("/");
    expect(await boxes(page).count()).toBe(0);
    await link.click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("1 selected").waitFor();
    expect(await selected(page)).toEqual(["Tides"]);
    await expectFocus(box(page, "Tides"));
    await visit.close();
  });

  test("46 what the service refuses to change stays selected, with a notice that says how many", async () => {
    const { account, ids } = await accountWith("Tides", "Charts", "Winds");
    const { visit, page } = await openSelecting(account, "Winds");
    await box(page, "Tides").click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("3 selected").waitFor();
    const requests = await intercept(page, "PUT", new RegExp(`/${ids["Charts"]}/archive$`));
    await action(page, "Archive").click();
    await expect.poll(() => requests.length).toBe(1);
    await expect.poll(() => links(page).count()).toBe(0);
    await requests[0]!.fulfill(refusal(422, "invalid"));
    await page.getByText("2 of 3 were archived; 1 couldn't be changed.").waitFor();
    await expect.poll(() => selected(page)).toEqual(["Charts"]);
    expect(await boxes(page).count()).toBe(1);
    await toolbar(page).getByText("1 selected").waitFor();
    await page.getByRole("alert").getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => boxes(page).allInnerTexts()).toEqual(["Winds", "Charts", "Tides"]);
    expect(await selected(page)).toEqual(["Charts"]);
    await visit.close();
  });

  test("38 a title that another device has changed does not prevent archiving; a limited rate delays it", async () => {
    const { account, ids } = await accountWith("Tides", "Charts");
    const { visit, page } = await openSelecting(account, "Charts");
    await box(page, "Tides").click();
    await toolbar(page).getByText("2 selected").waitFor();
    const requests = await intercept(page, "PUT", new RegExp(`/${ids["Tides"]}/archive$`));
    await action(page, "Archive").click();
    await expect.poll(() => requests.length).toBe(1);
    await account.request("PUT", `/conversations/${ids["Tides"]}/title`, { title: "Ebb and flow" });
    await requests[0]!.continue(); // refused: stale version
    await expect.poll(() => requests.length).toBe(2);
    await requests[1]!.fulfill(refusal(429, "rate_limited", "Too many requests.", { "Retry-After": "1" }));
    await expect.poll(() => requests.length).toBe(3);
    await requests[2]!.continue();
    for (let next = 3; (await archivedAt(account, ids["Tides"]!)) === null; next++) {
      await expect.poll(async () => requests.length > next || (await archivedAt(account, ids["Tides"]!))).toBeTruthy();
      await requests[next]?.continue();
    }
    await page.getByText("2 conversations archived").waitFor();
    expect((await account.read<{ title: string }>(`/conversations/${ids["Tides"]}`)).title).toBe("Ebb and flow");
    await visit.close();
  });

  test("26 several are moved into a project, and back with Undo", async () => {
    const { account, ids } = await accountWith("Tides", "Charts");
    const made = await account.request("POST", "/projects", { name: "Sea" });
    const { project_id } = (await made.json()) as { project_id: string };
    const { visit, page } = await openSelecting(account, "Charts");
    const projectOf = async (title: string) =>
      (await account.read<{ project_id: string | null }>(`/conversations/${ids[title]}`)).project_id;
    await box(page, "Tides").click();
    await toolbar(page).getByText("2 selected").waitFor();
    await action(page, "Move to project…").click();
    await page.getByRole("dialog", { name: "Move to project" }).getByRole("button", { name: "Sea" }).click();
    await page.getByText("2 conversations moved").hover(); // it stays until "Undo" is pressed
    expect([await projectOf("Tides"), await projectOf("Charts")]).toEqual([project_id, project_id]);
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => projectOf("Tides")).toBeNull();
    await expect.poll(() => projectOf("Charts")).toBeNull();
    await visit.close();
  });

  test("46 several are deleted after one question, and not at all with Undo", async () => {
    const { account, ids } = await accountWith("Tides", "Charts", "Winds");
    const { visit, page } = await openSelecting(account, "Winds");
    const requests = await intercept(page, "DELETE", /\/conversations\/conv_/);
    const deleteBoth = async () => {
      await action(page, "Delete").click();
      const dialog = page.getByRole("dialog", { name: "Delete 2 conversations?" });
      await dialog.getByRole("button", { name: "Delete" }).click();
      await expect.poll(() => sidebar(page).getByText("deleting…").count()).toBe(2);
    };
    await box(page, "Charts").click();
    await toolbar(page).getByText("2 selected").waitFor();
    await deleteBoth();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => sidebar(page).getByText("deleting…").count()).toBe(0);
    expect(requests.length, "requests after Undo").toBe(0);
    await toolbar(page).waitFor({ state: "hidden" });
    await links(page)
      .filter({ hasText: "Winds" })
      .click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("1 selected").waitFor();
    await box(page, "Charts").click();
    await toolbar(page).getByText("2 selected").waitFor();
    await deleteBoth();
    // Closing the toast with "Undo" does not undo the deletion.
    const pending = page.getByRole("status").filter({ hasText: "Deleting 2 conversations…" });
    await pending.getByRole("button", { name: "Close" }).press("Enter");
    await expect.poll(() => requests.length).toBe(2);
    for (const request of requests) await request.continue();
    await expect.poll(() => links(page).allInnerTexts()).toEqual(["Tides"]);
    expect([await exists(account, ids["Winds"]!), await exists(account, ids["Tides"]!)]).toEqual([false, true]);
    await visit.close();
  });

  test("46 what the service does not delete stays selected; a live answer is confirmed first", async () => {
    const { account, ids } = await accountWith("Tides", "Charts");
    const paused = await pausedAnswer();
    const { conversation } = await account.startTurn(paused.text);
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Winds" });
    const { visit, page } = await openSelecting(account, "Tides");
    await box(page, "Winds").click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("3 selected").waitFor();
    const requests = await intercept(page, "DELETE", new RegExp(`/conversations/${ids["Charts"]}$`));
    await action(page, "Delete").click();
    const several = page.getByRole("dialog", { name: "Delete 3 conversations?" });
    await several.getByRole("button", { name: "Delete" }).press("Enter");
    const live = page.getByRole("dialog", { name: "Delete “Winds”?" });
    await live.getByText(/^This stops the answer in progress/).waitFor();
    await live.getByRole("button", { name: "Delete" }).press("Enter");
    await expect.poll(() => exists(account, conversation)).toBe(false);
    // A page that is left does not wait for "Undo".
    await page.evaluate(() => window.dispatchEvent(new Event("pagehide")));
    await expect.poll(() => requests.length).toBe(1);
    await requests[0]!.fulfill(refusal(503, "unavailable"));
    await page.getByText("1 of 2 was deleted; 1 couldn't be deleted.").waitFor();
    await expect.poll(() => selected(page)).toEqual(["Charts"]);
    await expect.poll(() => boxes(page).allInnerTexts()).toEqual(["Charts"]);
    await paused.release();
    await visit.close();
  });

  test("26 a conversation that another device deletes leaves the selection", async () => {
    const { account, ids } = await accountWith("Tides", "Charts", "Winds");
    const { visit, page } = await openSelecting(account, "Winds");
    await box(page, "Charts").click();
    await toolbar(page).getByText("2 selected").waitFor();
    await account.request("DELETE", `/conversations/${ids["Winds"]}`);
    await toolbar(page).getByText("1 selected").waitFor();
    expect(await selected(page)).toEqual(["Charts"]);
    await visit.close();
  });

  test("14 a range reaches over rows that are not in the document, and all of it is archived", async () => {
    const titles = Array.from({ length: 70 }, (_, at) => `Tide ${at + 1}`);
    const { account } = await accountWith(...titles);
    const { visit, page } = await openSelecting(account, "Tide 70");
    await expectFocus(box(page, "Tide 70"));
    // The older page loads when the end of the newest one is reached.
    await page.keyboard.press("End");
    await expect
      .poll(async () => {
        await page.keyboard.press("Shift+End");
        return toolbar(page).getByRole("status").innerText();
      })
      .toBe("70 selected");
    await sidebar(page).getByRole("checkbox", { name: "Tide 1", exact: true }).waitFor();
    await page.keyboard.press("Home");
    await expectFocus(box(page, "Tide 70"));
    expect(await box(page, "Tide 70").getAttribute("aria-checked")).toBe("true");
    expect(await boxes(page).count(), "rows in the document").toBeLessThan(60);
    await page.keyboard.press("Space");
    await toolbar(page).getByText("69 selected").waitFor();
    await action(page, "Archive").click();
    await page.getByText("69 conversations archived").waitFor();
    await expect.poll(() => links(page).allInnerTexts()).toEqual(["Tide 70"]);
    await visit.close();
  });

  for (const [language, label] of [
    ["en", "Selected conversations"],
    ["ar", "المحادثات المحددة"],
  ] as const)
    test(`42 selecting is accessible, in light and dark: ${language}`, async () => {
      const { account } = await accountWith("Tides", "Charts");
      const visit = await BrowserWindow.open("/", account, { locale: language });
      const { page } = visit;
      await page
        .locator("#sidebar a[data-conversation]")
        .filter({ hasText: "Charts" })
        .click({ modifiers: ["Shift"] });
      const group = page.getByRole("group", { name: label });
      await expect.poll(() => group.getByRole("status").innerText()).not.toBe("");
      await expectAccessibleInBothColorSchemes(page, language);
      // The button that ends the selection is at the start of the line.
      const [first, last] = [group.getByRole("button").first(), group.getByRole("button").last()];
      const towardsEnd = (await last.boundingBox())!.x > (await first.boundingBox())!.x;
      expect(towardsEnd).toBe(language !== "ar");
      await visit.close();
    });

  test("41 all of it works with the keyboard; Esc ends the selection", async () => {
    const { account } = await accountWith("Tides", "Charts", "Winds");
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const { keyboard } = page;
    await links(page).filter({ hasText: "Winds" }).focus();
    await keyboard.press("Shift+ArrowDown");
    await toolbar(page).getByText("2 selected").waitFor();
    await expectFocus(box(page, "Charts"));
    await keyboard.press("Space");
    await toolbar(page).getByText("1 selected").waitFor();
    await keyboard.press("ArrowDown");
    await expectFocus(box(page, "Tides"));
    await keyboard.press("Space");
    await toolbar(page).getByText("2 selected").waitFor();
    expect(await selected(page)).toEqual(["Winds", "Tides"]);
    await keyboard.press("Escape");
    await toolbar(page).waitFor({ state: "hidden" });
    await expectFocus(links(page).filter({ hasText: "Tides" }));
    await keyboard.press("Shift+Home");
    await toolbar(page).getByText("3 selected").waitFor();
    await keyboard.press("Delete");
    const dialog = page.getByRole("dialog", { name: "Delete 3 conversations?" });
    await dialog.waitFor();
    await keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    await toolbar(page).getByText("3 selected").waitFor();
    await action(page, "Archive").press("Enter");
    await page.getByText("3 conversations archived").waitFor();
    await expect.poll(() => links(page).count()).toBe(0);
    await visit.close();
  });

  test("45 on a phone the drawer selects from the menu, with large targets and without overflow", async () => {
    const { account } = await accountWith("Tides", "Charts");
    const visit = await BrowserWindow.open("/", account, {
      viewport: { width: 320, height: 640 },
      hasTouch: true,
      isMobile: true,
    });
    const { page } = visit;
    await page.getByRole("button", { name: "Show sidebar" }).tap();
    await page.getByRole("button", { name: "Actions for “Charts”" }).tap();
    await page.getByRole("menuitem", { name: "Select", exact: true }).tap();
    await toolbar(page).getByText("1 selected").waitFor();
    await box(page, "Tides").tap();
    await toolbar(page).getByText("2 selected").waitFor();
    const targets = [...(await toolbar(page).getByRole("button").all()), ...(await boxes(page).all())];
    expect(targets.length).toBe(6);
    for (const target of targets) {
      const { width, height } = (await target.boundingBox())!;
      expect(Math.min(width, height)).toBeGreaterThanOrEqual(44);
    }
    const overflow = await page.locator("#sidebar").evaluate((element) => element.scrollWidth - element.clientWidth);
    expect(overflow).toBe(0);
    await page.keyboard.press("Escape");
    await toolbar(page).waitFor({ state: "hidden" });
    await sidebar(page).waitFor();
    await visit.close();
  });

  test("26 archived conversations are restored and deleted together in the settings", async () => {
    const { account, ids } = await accountWith("Tides", "Charts", "Winds");
    for (const id of Object.values(ids))
      await account.request("PUT", `/conversations/${id}/archive`, { archived: true }, { "If-Match": '"v1"' });
    const visit = await BrowserWindow.open("/settings#archive", account);
    const { page } = visit;
    const archive = page.getByRole("list", { name: "Archive" });
    await archive.getByRole("link", { name: "Tides" }).waitFor();
    await page.getByRole("button", { name: "Select", exact: true }).click();
    await archive.getByRole("checkbox", { name: "Charts" }).click();
    await archive.getByRole("checkbox", { name: "Winds" }).click();
    await toolbar(page).getByText("2 selected").waitFor();
    await action(page, "Restore").click();
    await page.getByText("2 conversations restored").hover(); // it stays until "Undo" is pressed
    await expect.poll(() => archive.getByRole("link").allInnerTexts()).toEqual(["Tides"]);
    await expect.poll(() => links(page).allInnerTexts()).toEqual(["Winds", "Charts"]);
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(() => links(page).count()).toBe(0);
    await expect.poll(() => archive.getByRole("link").count()).toBe(3);
    await page.getByRole("button", { name: "Select", exact: true }).click();
    await expectFocus(archive.getByRole("checkbox").first());
    await archive.getByRole("checkbox", { name: "Winds" }).click();
    await archive.getByRole("checkbox", { name: "Tides" }).click({ modifiers: ["Shift"] });
    await toolbar(page).getByText("3 selected").waitFor();
    await archive.getByRole("checkbox", { name: "Tides" }).click();
    await toolbar(page).getByText("2 selected").waitFor();
    await action(page, "Delete").click();
    const dialog = page.getByRole("dialog", { name: "Delete 2 conversations?" });
    await dialog.getByRole("button", { name: "Delete" }).click();
    const pending = page.getByRole("status").filter({ hasText: "Deleting 2 conversations…" });
    await pending.getByRole("button", { name: "Close" }).press("Enter");
    await expect.poll(() => archive.getByRole("link").allInnerTexts()).toEqual(["Tides"]);
    expect([await exists(account, ids["Winds"]!), await exists(account, ids["Tides"]!)]).toEqual([false, true]);
    await visit.close();
  });
});
