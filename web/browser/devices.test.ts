// Tests of two browsers of one account: each shows what the other changes, without a reload, and loses nothing while its
// network is away.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { composer, messages, pausedAnswer, sidebar, stop, waiting } from "./conversation-page";
import { FaultProxy } from "./fault-proxy";
import { Account, BrowserWindow, phone, withBrowser } from "./harness";

withBrowser();

/** Waits until the feed of a new page is connected: from then on it shows changes without a request of its own. */
async function openFollowing(path: string, account: Account, options = {}): Promise<BrowserWindow> {
  const visit = await BrowserWindow.open("/robots.txt", account, options);
  const connected = visit.page.waitForResponse((response) => new URL(response.url()).pathname === "/events");
  await visit.page.goto(new URL(path, visit.page.url()).href);
  expect((await connected).status()).toBe(200);
  return visit;
}

/** Makes a change and waits until a page shows it without being reloaded. `make bench-web` measures how long that takes. */
async function shows(page: Page, change: () => Promise<unknown>, shown: () => Promise<unknown>): Promise<void> {
  const loadedAt = () => page.evaluate(() => performance.timeOrigin);
  const before = await loadedAt();
  await change();
  await shown();
  expect(await loadedAt()).toBe(before);
}

/** Waits for the response to a request of the page that its action causes. */
async function acting(page: Page, method: string, path: RegExp, action: () => Promise<unknown>): Promise<void> {
  const response = page.waitForResponse((one) => one.request().method() === method && path.test(one.url()));
  await action();
  expect((await response).ok(), `${method} ${path.source}`).toBe(true);
}

const draftShown = (page: Page, text: string) =>
  page.waitForFunction((wanted) => document.querySelector("textarea")?.value === wanted, text);

describe("two browsers of one account", () => {
  test("each shows the changes of the other without a reload, also in a second tab and on a phone", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Sums" });
    const laptop = await openFollowing(`/c/${conversation}`, account);
    const mobile = await openFollowing(`/c/${conversation}`, account);
    await messages(mobile.page).nth(1).waitFor();
    await showDraftAndTitle(account, conversation, laptop.page, mobile.page);
    await showBranch(account, conversation, laptop.page, mobile.page);
    await showOrderOfQueue(account, conversation, mobile.page);
    await showDeletion(account, mobile.page);
    await mobile.page.setViewportSize(phone);
    await followWithoutFirstTab(account, conversation, laptop, mobile.page);
    await laptop.close();
    await mobile.close();
  });

  test("a browser whose network was away shows everything that changed in the meantime", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    const [renamed, deleted] = [await account.chat("Hello!"), await account.chat("Hello!")];
    await account.request("PUT", `/conversations/${deleted}/title`, { title: "To be deleted" });
    const network = await FaultProxy.start();
    const visit = await openFollowing(`/c/${conversation}`, account, { proxy: network.proxy });
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await sidebar(page)
      .getByRole("link", { name: /^To be deleted/ })
      .waitFor();
    const broken = page.waitForEvent("requestfailed", (request) => new URL(request.url()).pathname === "/events");
    network.cut();
    await broken;
    await account.request("PUT", `/conversations/${renamed}/title`, { title: "Renamed meanwhile" });
    await account.request("DELETE", `/conversations/${deleted}`);
    await account.request("PUT", `/conversations/${conversation}/draft`, { content: "Typed meanwhile" });
    const started = await account.chat("Started meanwhile");
    await account.request("PUT", `/conversations/${started}/title`, { title: "Started meanwhile" });
    await account.chat("And 7*8?", { conversation_id: conversation });
    await account.request("PUT", "/account/settings", {
      ...(await account.read<object>("/account/settings")),
      theme: "dark",
    });
    network.restore();
    for (const title of ["Renamed meanwhile", "Started meanwhile"])
      await sidebar(page)
        .getByRole("link", { name: new RegExp(`^${title}`) })
        .waitFor();
    await sidebar(page)
      .getByRole("link", { name: /^To be deleted/ })
      .waitFor({ state: "detached" });
    await page.getByText("And 7*8?").first().waitFor();
    await expect.poll(() => messages(page).count()).toBe(4);
    await draftShown(page, "Typed meanwhile");
    await visit.close();
    await network.close();
  });
});

describe("a conversation that is deleted on another device while it is open", () => {
  test("cannot be written to; what was typed stays, and is sent in a new conversation", async () => {
    const account = await Account.register();
    const conversation = await account.chat("What is 6*7?");
    const visit = await openFollowing(`/c/${conversation}`, account);
    const { page } = visit;
    await messages(page).nth(1).waitFor();
    await composer(page).fill("And 7*8?");
    await account.request("DELETE", `/conversations/${conversation}`);
    await page.getByRole("alert").getByText("Your message is kept.").waitFor();
    expect(await composer(page).inputValue()).toBe("And 7*8?");
    await composer(page).press("Enter");
    expect(await page.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
    await composer(page).fill("");
    await page.getByRole("button", { name: "New conversation" }).waitFor();
    await composer(page).fill("What is 7*8?");
    await page.getByRole("button", { name: "Send in a new conversation" }).press("Enter");
    await page.waitForURL(
      (address) => /^\/c\/conv_/.test(address.pathname) && !address.pathname.endsWith(conversation),
    );
    await messages(page)
      .nth(1)
      .getByText(/\b56\b/)
      .first()
      .waitFor();
    expect(await composer(page).inputValue()).toBe("");
    expect(await messages(page).nth(0).innerText()).toContain("What is 7*8?");
    await visit.close();
  });

  test("what was typed is in the new chat after the page was loaded again or left", async () => {
    for (const leave of ["reload", "link"] as const) {
      const account = await Account.register();
      const conversation = await account.chat("What is 6*7?");
      const visit = await openFollowing(`/c/${conversation}`, account);
      const { page } = visit;
      await messages(page).nth(1).waitFor();
      await composer(page).fill("And 7*8?");
      await account.request("DELETE", `/conversations/${conversation}`);
      await page.getByRole("alert").getByText("Your message is kept.").waitFor();
      if (leave === "reload") await page.reload();
      else await page.getByRole("link", { name: "Library" }).click();
      await page.getByRole("link", { name: "New conversation", exact: true }).click();
      await expect.poll(() => composer(page).inputValue()).toBe("And 7*8?");
      await visit.close();
    }
  });

  test("the new conversation is in the same project, unless that no longer exists", async () => {
    const account = await Account.register();
    const create = async (path: string, id: string, content: object) =>
      ((await (await account.request("POST", path, content)).json()) as Record<string, string>)[id]!;
    const project = await create("/projects", "project_id", { name: "Tides" });
    for (const exists of [true, false]) {
      const conversation = await create(`/projects/${project}/conversations`, "conversation_id", {});
      const visit = await BrowserWindow.open("/robots.txt", account);
      const { page } = visit;
      const loaded = page.waitForResponse((response) => new URL(response.url()).pathname.endsWith("/messages"));
      await page.goto(new URL(`/c/${conversation}`, page.url()).href);
      await (await loaded).finished(); // one that is deleted before is not found
      await page
        .getByRole("main")
        .getByRole("button", { name: /^Attach a PDF/ })
        .waitFor();
      await composer(page).fill("What is 7*8?");
      await account.request("DELETE", `/conversations/${conversation}`);
      await page.getByRole("alert").getByText("Your message is kept.").waitFor();
      if (!exists) await account.request("PUT", `/projects/${project}/archive`, { archived: true, version: 1 });
      await page.getByRole("button", { name: "Send in a new conversation" }).press("Enter");
      await page.waitForURL(
        (address) => /^\/c\/conv_/.test(address.pathname) && !address.pathname.endsWith(conversation),
      );
      await messages(page)
        .nth(1)
        .getByText(/\b56\b/)
        .first()
        .waitFor();
      const id = new URL(page.url()).pathname.split("/").at(-1)!;
      const { project_id: found } = await account.read<{ project_id: string | null }>(`/conversations/${id}`);
      expect(found).toBe(exists ? project : null);
      await visit.close();
    }
  });
});

async function showDraftAndTitle(account: Account, conversation: string, laptop: Page, mobile: Page): Promise<void> {
  await shows(
    mobile,
    () => acting(laptop, "PUT", /\/draft$/, () => composer(laptop).fill("From the laptop")),
    () => draftShown(mobile, "From the laptop"),
  );
  await shows(
    mobile,
    () => account.request("PUT", `/conversations/${conversation}/title`, { title: "Two tides a day" }),
    () =>
      sidebar(mobile)
        .getByRole("link", { name: /^Two tides a day/ })
        .waitFor(),
  );
}

/** Another version of the question, on the other browser. */
async function showBranch(account: Account, conversation: string, laptop: Page, mobile: Page): Promise<void> {
  await account.request("PUT", `/conversations/${conversation}/draft`, { content: "" });
  const question = (await account.read<{ data: { message_id: string }[] }>(`/conversations/${conversation}/messages`))
    .data[0]!;
  await account.chat("What is 7*8?", {
    conversation_id: conversation,
    branch: { message_id: question.message_id, mode: "edit" },
  });
  await mobile.getByText("What is 7*8?").first().waitFor();
  await laptop.getByText("What is 7*8?").first().waitFor();
  await shows(
    mobile,
    () =>
      acting(laptop, "PUT", /\/active-branch$/, async () => {
        await messages(laptop).first().hover();
        await messages(laptop).first().getByRole("button", { name: "Previous version" }).click();
      }),
    () => mobile.getByText("What is 6*7?").first().waitFor(),
  );
}

async function showOrderOfQueue(account: Account, conversation: string, mobile: Page): Promise<void> {
  const answer = await pausedAnswer();
  const { turn } = await account.startTurn(answer.text, { conversation_id: conversation });
  await stop(mobile).waitFor();
  for (const text of ["first", "second"])
    await account.request("POST", `/conversations/${conversation}/follow-ups`, { content: text });
  const queued = () => waiting(mobile).getByRole("listitem");
  await expect.poll(() => queued().count()).toBe(2);
  const { queue_version, data } = await account.read<{ queue_version: number; data: { follow_up_id: string }[] }>(
    `/conversations/${conversation}/follow-ups`,
  );
  await shows(
    mobile,
    () =>
      account.request("PUT", `/conversations/${conversation}/follow-ups/order`, {
        order: data.map((one) => one.follow_up_id).reverse(),
        queue_version,
      }),
    () => queued().first().getByText("second").waitFor(),
  );
  await account.request("POST", "/chat/steering", { type: "cancel", turn_id: turn, scope: "turn_and_follow_ups" });
  await stop(mobile).waitFor({ state: "hidden" });
  await answer.release();
}

async function showDeletion(account: Account, mobile: Page): Promise<void> {
  const other = await account.chat("Hello!");
  await account.request("PUT", `/conversations/${other}/title`, { title: "To be deleted" });
  const row = sidebar(mobile).getByRole("link", { name: /^To be deleted/ });
  await row.waitFor();
  await shows(
    mobile,
    () => account.request("DELETE", `/conversations/${other}`),
    () => row.waitFor({ state: "detached" }),
  );
}

/** A second tab and a phone follow too, and the feed continues when the first tab closes. */
async function followWithoutFirstTab(
  account: Account,
  conversation: string,
  laptop: BrowserWindow,
  mobile: Page,
): Promise<void> {
  const second = await laptop.tab(`/c/${conversation}`);
  await messages(second).nth(1).waitFor();
  await account.request("PUT", `/conversations/${conversation}/draft`, { content: "one" });
  for (const page of [laptop.page, second, mobile]) await draftShown(page, "one");
  await laptop.page.close();
  await account.request("PUT", `/conversations/${conversation}/draft`, { content: "two" });
  for (const page of [second, mobile]) await draftShown(page, "two");
}
