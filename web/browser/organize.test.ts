// Tests of sorting one's work: pinning, archiving, the order of the queue, and feedback on answers.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  expectFocus,
  fast,
  intercept,
  messages,
  pausedAnswer,
  queue,
  refusal,
  sidebar,
  waiting,
} from "./conversation-page";
import { expectAccessible, expectAccessibleInBothColorSchemes } from "./axe";
import { Account, BrowserWindow, desktop, phone, sharedAccount, withBrowser } from "./harness";

withBrowser();

const rows = (page: Page) => sidebar(page).locator("a[data-conversation]");
const menuOf = (page: Page, title: string) => page.getByRole("button", { name: `Actions for “${title}”` });

/** Creates conversations with these titles, the last one newest. */
async function conversations(account: Account, ...titles: string[]): Promise<string[]> {
  const made: string[] = [];
  for (const title of titles) {
    const response = await account.request("POST", "/conversations", { title });
    made.push(((await response.json()) as { conversation_id: string }).conversation_id);
  }
  return made;
}

async function choose(page: Page, title: string, item: string): Promise<void> {
  await rows(page).filter({ hasText: title }).hover();
  await menuOf(page, title).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

const expectRows = (page: Page, ...titles: string[]) => expect.poll(() => rows(page).allInnerTexts()).toEqual(titles);

describe("the conversation list", () => {
  test("26, 38 and 46 conversations are pinned and archived at once, also after another device changed them; a refusal is reverted", async () => {
    const account = await Account.register();
    const [tides, charts] = await conversations(account, "Tides", "Charts", "Winds");
    const visit = await BrowserWindow.open("/", account);
    await expectRows(visit.page, "Winds", "Charts", "Tides");
    await pin(visit.page);
    await refusePin(visit.page, account, charts!);
    await archive(visit, tides!);
    await archiveStale(visit.page, account, tides!);
    await visit.close();
  });

  /** A pinned conversation moves to the top at once, and stays there after a reload. */
  async function pin(page: Page): Promise<void> {
    await choose(page, "Tides", "Pin");
    await expectRows(page, "Tides", "Winds", "Charts");
    await sidebar(page).getByRole("heading", { name: "Pinned" }).waitFor();
    await page.reload();
    await expectRows(page, "Tides", "Winds", "Charts");
    await choose(page, "Tides", "Unpin");
    await expectRows(page, "Winds", "Charts", "Tides");
  }

  /** A change that the service refuses is reverted, with a notice. Until then, changes of other devices leave it as it is. */
  async function refusePin(page: Page, account: Account, charts: string): Promise<void> {
    const requests = await intercept(page, "PUT", /\/pin$/);
    await choose(page, "Tides", "Pin");
    await expectRows(page, "Tides", "Winds", "Charts");
    await expect.poll(() => requests.length).toBe(1);
    for (const title of ["Maps", "Charts"]) {
      const listed = page.waitForResponse((response) => /\/conversations\?/.test(response.url()));
      await account.request("PUT", `/conversations/${charts}/title`, { title });
      await (await listed).finished();
      await expectRows(page, "Tides", "Winds", title);
    }
    await requests[0]!.fulfill(refusal(422, "invalid"));
    await page.getByText("Couldn't change “Tides”. Nothing is lost.").waitFor();
    await expectRows(page, "Winds", "Charts", "Tides");
  }

  /** An archived conversation leaves the list, can be brought back, and is listed in the settings. */
  async function archive(visit: BrowserWindow, tides: string): Promise<void> {
    const { page } = visit;
    await choose(page, "Tides", "Archive");
    await expectRows(page, "Winds", "Charts");
    await page.getByRole("button", { name: "Undo" }).click();
    await expectRows(page, "Winds", "Charts", "Tides");
    await choose(page, "Tides", "Archive");
    await expectRows(page, "Winds", "Charts");
    await visit.follow("/settings#archive");
    const archived = page.getByRole("list", { name: "Archive" });
    await archived.getByRole("link", { name: "Tides" }).click();
    await page.waitForURL(`**/c/${tides}`);
    await page.getByText("Archived", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Actions for this conversation" }).click();
    await page.getByRole("menuitem", { name: "Restore" }).click();
    await expectRows(page, "Winds", "Charts", "Tides");
  }

  /** A title that another device has changed does not prevent archiving. */
  async function archiveStale(page: Page, account: Account, tides: string): Promise<void> {
    const requests = await intercept(page, "PUT", /\/archive$/);
    await choose(page, "Tides", "Archive");
    await expect.poll(() => requests.length).toBe(1);
    await account.request("PUT", `/conversations/${tides}/title`, { title: "Ebb and flow" });
    await requests[0]!.continue();
    await expect.poll(() => requests.length).toBe(2);
    await requests[1]!.continue();
    await expect
      .poll(async () => (await account.read<{ archived_at: string | null }>(`/conversations/${tides}`)).archived_at)
      .not.toBeNull();
    expect((await account.read<{ title: string }>(`/conversations/${tides}`)).title).toBe("Ebb and flow");
  }
});

test("26 and 38 quick changes are sent in order, and the page asks before it is closed while one waits", async () => {
  const account = await Account.register();
  const [tides] = await conversations(account, "Tides");
  const made = await account.request("POST", "/projects", { name: "Sea" });
  const { project_id } = (await made.json()) as { project_id: string };
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await expectRows(page, "Tides");
  const requests = await intercept(page, "PUT", /\/(pin|project|title)$/);
  await choose(page, "Tides", "Pin");
  await expect.poll(() => requests.length).toBe(1);
  await choose(page, "Tides", "Move to project…");
  await page.getByRole("dialog", { name: "Move to project" }).getByRole("button", { name: "Sea" }).click();
  await rows(page).filter({ hasText: "Tides" }).press("F2");
  await page.getByRole("textbox", { name: "Title" }).fill("Ebb and flow");
  await page.keyboard.press("Enter");
  await expectRows(page, "Ebb and flow");
  expect(requests.length, "the others wait").toBe(1);
  const [question] = await Promise.all([page.waitForEvent("dialog"), page.close({ runBeforeUnload: true })]);
  expect(question.type()).toBe("beforeunload");
  await question.dismiss();
  for (const at of [0, 1, 2]) {
    await expect.poll(() => requests.length).toBe(at + 1);
    await requests[at]!.continue();
  }
  const stored = () => account.read<Record<string, unknown>>(`/conversations/${tides}`);
  await expect.poll(async () => (await stored())["title"]).toBe("Ebb and flow");
  expect(await stored()).toMatchObject({ project_id, pinned_at: expect.any(String) as string });
  expect(requests.map((one) => one.request().url().split("/").at(-1))).toEqual(["pin", "project", "title"]);
  await visit.close();
});

/** Chooses to sign out. */
async function signOut(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Account: Robin" }).press("Enter");
  await page.getByRole("menuitem", { name: "Sign out" }).press("Enter");
}

test("26 and 38 a sign-out waits until quick changes are stored, and asks if some are not", async () => {
  const account = await Account.register();
  await conversations(account, "Tides");
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await page.clock.install();
  await page.reload();
  await expectRows(page, "Tides");
  const changing = /\/(pin|title)$/;
  const changes = await intercept(page, "PUT", changing);
  const logouts = await intercept(page, "POST", "**/auth/logout");
  let asked = 0;
  page.on("dialog", (question) => {
    asked++;
    void question.accept();
  });
  const dialog = page.getByRole("dialog", { name: "Sign out now?" });
  const saving = page.getByText("Saving your last changes…");
  const rename = async (title: string) => {
    await rows(page).first().press("F2");
    await page.getByRole("textbox", { name: "Title" }).fill(title);
    await page.keyboard.press("Enter");
    await expectRows(page, title);
  };

  // One is refused: it is reverted, and the user can repeat it.
  await choose(page, "Tides", "Pin");
  await expect.poll(() => changes.length).toBe(1);
  await rename("Ebb");
  await signOut(page);
  await saving.waitFor();
  await changes[0]!.fulfill(refusal(422, "invalid"));
  await expect.poll(() => changes.length).toBe(2);
  await changes[1]!.continue();
  await dialog.getByText("1 change to your conversations isn't saved.").waitFor();
  await saving.waitFor({ state: "hidden" });
  await expectAccessibleInBothColorSchemes(page, "the sign-out confirmation");
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");

  // Two are not answered in time: the page may be left without a question of the browser.
  await page.getByRole("button", { name: "Try again" }).click();
  await expect.poll(() => changes.length).toBe(3);
  await rename("Flow");
  await signOut(page);
  await saving.waitFor();
  await page.clock.fastForward(10_000);
  await dialog.getByText("2 changes to your conversations aren't saved.").waitFor();
  expect(logouts.length).toBe(0);
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");

  // All are stored: the user is not asked.
  await signOut(page);
  await saving.waitFor();
  await page.unroute(changing);
  expect(logouts.length).toBe(0);
  await changes[2]!.continue();
  await expect.poll(() => logouts.length).toBe(1);
  await logouts[0]!.continue();
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password", { exact: true }).fill(account.password);
  await page.keyboard.press("Enter");
  await expectRows(page, "Flow");
  await sidebar(page).getByRole("heading", { name: "Pinned" }).waitFor();

  // They are discarded.
  const discarded = await intercept(page, "PUT", changing);
  await choose(page, "Flow", "Unpin");
  await expect.poll(() => discarded.length).toBe(1);
  await rename("Neap");
  await signOut(page);
  await saving.waitFor();
  await page.clock.fastForward(10_000);
  await dialog.getByRole("button", { name: "Sign out and discard" }).press("Enter");
  await expect.poll(() => logouts.length).toBe(2);
  await logouts[1]!.continue();
  await page.getByLabel("Email").waitFor();
  expect(asked, "questions of the browser").toBe(0);
  await visit.close();
});

test("26 and 38 a sign-out waits for deletions and for the changes of other tabs, and asks if some are not stored", async () => {
  const account = await Account.register();
  await conversations(account, "Tides", "Charts", "Winds");
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await page.clock.install();
  await page.reload();
  await expectRows(page, "Winds", "Charts", "Tides");
  const other = await visit.tab("/");
  await expectRows(other, "Winds", "Charts", "Tides");
  const logouts = await intercept(page, "POST", "**/auth/logout");
  const saving = page.getByText("Saving your last changes…");
  const remove = async (from: Page, title: string) => {
    await choose(from, title, "Delete");
    await from.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await from.getByRole("button", { name: "Undo" }).waitFor();
  };

  // A deletion is sent at once, and not answered in time.
  const deletion = /\/conversations\/conv_\w+$/;
  const winds = await intercept(page, "DELETE", deletion);
  await remove(page, "Winds");
  expect(winds.length).toBe(0);
  await signOut(page);
  await saving.waitFor();
  await expect.poll(() => winds.length).toBe(1);
  await page.clock.fastForward(10_000);
  const dialog = page.getByRole("dialog", { name: "Sign out now?" });
  await dialog.getByText("1 change to your conversations isn't saved.").waitFor();
  expect(logouts.length).toBe(0);
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
  await winds[0]!.continue();
  await expectRows(page, "Charts", "Tides");
  await expectRows(other, "Charts", "Tides");

  // Another tab stores a change, and sends a deletion that waited for "Undo".
  const changes = await intercept(other, "PUT", /\/pin$/);
  const tides = await intercept(other, "DELETE", deletion);
  await choose(other, "Charts", "Pin");
  await expect.poll(() => changes.length).toBe(1);
  await remove(other, "Tides");
  await signOut(page);
  await saving.waitFor();
  await expect.poll(() => tides.length).toBe(1);
  await tides[0]!.continue();
  await expectRows(other, "Charts");
  expect(logouts.length).toBe(0);
  await changes[0]!.continue();
  await expect.poll(() => logouts.length).toBe(1);
  await logouts[0]!.continue();
  await other.getByLabel("Email").waitFor();
  await page.getByLabel("Email").fill(account.email);
  await page.getByLabel("Password", { exact: true }).fill(account.password);
  await page.keyboard.press("Enter");
  await expectRows(page, "Charts");
  await sidebar(page).getByRole("heading", { name: "Pinned" }).waitFor();
  await visit.close();
});

describe("the queue", () => {
  /** The second move does not wait until the first one is stored. */
  async function moveTwiceAtOnce(page: Page, order: () => Promise<string[]>): Promise<void> {
    const requests = await intercept(page, "PUT", /\/follow-ups\/order$/);
    const handle = waiting(page).getByRole("button", { name: "Reorder: Third" });
    await handle.focus();
    await page.keyboard.press("ArrowUp");
    await expect.poll(order).toEqual(["Second", "Third", "First"]);
    await expectFocus(handle);
    await page.keyboard.press("ArrowUp");
    await expect.poll(order).toEqual(["Third", "Second", "First"]);
    expect(requests.length).toBe(1);
    await requests[0]!.continue();
    await expect.poll(() => requests.length).toBe(2);
    await requests[1]!.continue();
    await expect.poll(order).toEqual(["Third", "Second", "First"]);
  }

  test("7 the order is changed by keyboard and by dragging, and is the order of the service", async () => {
    const account = await sharedAccount();
    const paused = await pausedAnswer();
    const { conversation } = await account.startTurn(paused.text);
    for (const content of ["First", "Second", "Third"])
      await account.request("POST", `/conversations/${conversation}/follow-ups`, { content });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const order = () => waiting(page).getByRole("listitem").locator("p[title]").allInnerTexts();
    await expect.poll(order).toEqual(["First", "Second", "Third"]);
    const handle = waiting(page).getByRole("button", { name: "Reorder: Third" });
    await handle.focus();
    await page.keyboard.press("ArrowUp");
    await expect.poll(order).toEqual(["First", "Third", "Second"]);
    await expectFocus(handle);
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: First", "queued: Third", "queued: Second"]);
    await waiting(page)
      .getByRole("button", { name: "Reorder: Second" })
      .dragTo(waiting(page).getByRole("listitem").filter({ hasText: "First" }));
    await expect.poll(order).toEqual(["Second", "First", "Third"]);
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: Second", "queued: First", "queued: Third"]);
    await moveTwiceAtOnce(page, order);
    await expect.poll(() => queue(account, conversation)).toEqual(["queued: Third", "queued: Second", "queued: First"]);
    await paused.release();
    await visit.close();
  });
});

describe("feedback", () => {
  test("25 a rating is stored with its reasons, can be removed, and is offered for the newest answer only", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat(`One ${fast(5)}`);
    await account.chat(`Two ${fast(5)}`, { conversation_id: conversation });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    const feedback = async () =>
      (await account.read<{ data: { feedback: object | null }[] }>(`/conversations/${conversation}/messages`)).data.map(
        (message) => message.feedback,
      );
    await messages(page).last().hover();
    const bad = page.getByRole("button", { name: "Bad answer" });
    await expect.poll(() => bad.count()).toBe(1);
    await bad.click();
    await expect.poll(() => bad.getAttribute("aria-pressed")).toBe("true");
    await page.getByRole("button", { name: "Say why" }).click();
    const dialog = page.getByRole("dialog", { name: "What was wrong?" });
    await dialog.getByText("Inaccurate", { exact: true }).click();
    await dialog.getByLabel("Anything else?").fill("Two is not a number of tides.");
    await dialog.getByRole("button", { name: "Send" }).click();
    await expect
      .poll(async () => (await feedback()).filter((one) => one !== null))
      .toEqual([{ rating: "down", reasons: ["inaccurate"], comment: "Two is not a number of tides." }]);
    await page.reload();
    await messages(page).last().hover();
    await expect.poll(() => bad.getAttribute("aria-pressed")).toBe("true");
    await bad.click();
    await expect.poll(async () => (await feedback()).filter((one) => one !== null)).toEqual([]);
    await visit.close();
  });
});

test("29 the page of a project starts conversations, which name their project", async () => {
  const account = await Account.register();
  const made = await account.request("POST", "/projects", { name: "Harbours and tides of the whole coast" });
  const { project_id } = (await made.json()) as { project_id: string };
  const visit = await BrowserWindow.open(`/p/${project_id}`, account);
  const { page } = visit;
  const field = page.getByRole("main").getByRole("textbox", { name: "Message", exact: true });
  await field.fill("Hello from the project");
  await page.getByRole("link", { name: "Library" }).press("Enter");
  await page.waitForURL("**/library");
  await page.goBack();
  await expect.poll(() => field.inputValue()).toBe("Hello from the project");
  await page.reload();
  await expect.poll(() => field.inputValue()).toBe("Hello from the project");
  for (const viewport of [desktop, phone]) {
    await page.setViewportSize(viewport);
    await expectAccessible(page, "a project");
  }
  await field.press("Enter");
  await page.waitForURL("**/c/*");
  const project = page.getByRole("main").getByRole("link", { name: "Harbours and tides of the whole coast" });
  await project.waitFor();
  await messages(page)
    .nth(1)
    .getByText(/It is good to hear/)
    .waitFor();
  await expectAccessible(page, "a conversation of a project");
  await page.setViewportSize({ width: 320, height: 640 });
  const widths = [page.getByRole("heading", { level: 1 }), project].map(
    async (one) => (await one.boundingBox())!.width,
  );
  const [title, name] = await Promise.all(widths);
  expect(title, "the title has more room than the name of the project").toBeGreaterThan(name!);
  await project.press("Enter");
  await page.getByRole("link", { name: "Hello from the project" }).last().waitFor();
  expect(await field.inputValue()).toBe("");
  await visit.close();
});

test("29 the composer of a project has files, tools and profiles, and what it sends is in the project", async () => {
  const account = await Account.register();
  const made = await account.request("POST", "/projects", { name: "Tides" });
  const { project_id } = (await made.json()) as { project_id: string };
  const visit = await BrowserWindow.open(`/p/${project_id}`, account);
  const { page } = visit;
  const main = page.getByRole("main");
  const field = main.getByRole("textbox", { name: "Message", exact: true });
  await main.getByRole("button", { name: "Model profile: Auto" }).press("Enter");
  await page.getByRole("menuitemradio", { name: /^Coding/ }).press("Enter");
  await main.getByRole("button", { name: "Model profile: Coding" }).waitFor();
  await main.getByRole("button", { name: "Tools" }).waitFor();
  expect(await main.getByRole("button", { name: "Temporary conversation" }).count(), "it would be in no project").toBe(
    0,
  );
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    (async () => {
      await main.getByRole("button", { name: "Add files" }).press("Enter");
      await page.getByRole("menuitem", { name: "Upload files" }).press("Enter");
    })(),
  ]);
  await chooser.setFiles({ name: "tides.txt", mimeType: "text/plain", buffer: Buffer.from("Two a day.") });
  await main.getByRole("list", { name: "Files in the message" }).getByText("tides.txt").waitFor();
  await field.fill("Hello");
  await field.press("Enter");
  await page.waitForURL("**/c/*");
  await messages(page).nth(1).waitFor();
  const conversation = async () => {
    const id = page.url().split("/").at(-1)!;
    return (await (await account.request("GET", `/conversations/${id}`)).json()) as Record<string, unknown>;
  };
  expect(await conversation()).toMatchObject({ project_id, profile: "coding" });
  await messages(page).first().getByText("tides.txt").waitFor();
  // A message that is sent before its draft is stored.
  await page.goBack();
  await field.waitFor();
  expect(await field.inputValue()).toBe("");
  const before = page.url();
  await field.fill("At once");
  await field.press("Enter");
  await page.waitForURL((to) => to.pathname.startsWith("/c/") && to.href !== before);
  await messages(page).nth(1).waitFor();
  expect(await conversation()).toMatchObject({ project_id });
  await visit.close();
});
