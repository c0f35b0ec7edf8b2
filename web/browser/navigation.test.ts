// Tests of finding one's way: addresses, the conversation list, the palette, settings, tooltips and low windows.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  composer,
  expectFocus,
  intercept,
  pausedAnswer,
  refusal,
  send,
  sidebar,
  stop,
  waitForAnswerEnd,
  waitForAnswerText,
} from "./conversation-page";
import { newIdentifier } from "../src/api/identifier";
import { Account, BrowserWindow, phone, sharedAccount, url, withBrowser } from "./harness";

withBrowser();

describe("addresses", () => {
  test("the app shows its own page for every address that it does not know, and ignores a trailing slash", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    await page.goto(`${url}/settings/`);
    await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
    await page.goto(`${url}/c/${conversation}/`);
    await page.locator("[data-message]").last().waitFor();
    const documentOf = async (path: string) =>
      (await (await page.request.get(url + path, { headers: { Accept: "text/html" } })).text()).length;
    const whole = await documentOf("/");
    for (const path of ["/c", "/c/", "/login", "/settings/unknown", "/c/nothing", "/c/nothing/more"]) {
      await visit.follow("/settings");
      await page.getByRole("heading", { level: 1, name: "Settings" }).waitFor();
      expect(await documentOf(path), `the document of ${path}`).toBe(whole);
      await page.evaluate((address) => history.pushState(null, "", address), path);
      await page.getByRole("main").getByRole("heading", { level: 1, name: "Page not found" }).waitFor();
      await page.getByRole("navigation", { name: "Conversations" }).waitFor();
      await expect.poll(() => page.title(), { message: path }).toBe("Page not found · Turnstone");
    }
    await visit.close();
  });

  test("a signed-out user signs in first, and then sees the page of the address", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/health");
    const { page } = visit;
    for (const [path, heading] of [
      ["/nowhere", "Page not found"],
      ["/settings/", "Settings"],
    ] as const) {
      await page.goto(url + path);
      await page.getByLabel("Email").fill(account.email);
      await page.getByLabel("Password", { exact: true }).fill(account.password);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("heading", { level: 1, name: heading }).waitFor();
      await page.context().clearCookies();
    }
    await visit.close();
  });
});

/** Returns the addresses of the GET requests to a path of the API from now on. */
function watchRequests(page: Page, path: string): string[] {
  const found: string[] = [];
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (request.method() === "GET" && to.pathname === path) found.push(to.pathname + to.search);
  });
  return found;
}

describe("parts of the app that are loaded later", () => {
  test("a dialog that cannot be loaded is reported, and opens at the next try", async () => {
    const visit = await BrowserWindow.open("/health", await sharedAccount());
    const { page } = visit;
    await page.goto(url); // none of its parts is loaded
    await composer(page).fill("Still here");
    await page.route(/\/assets\/palette-/, (route) => route.abort());
    await page.keyboard.press("Control+k");
    await page.getByText("This part of the app couldn't be loaded.").waitFor();
    expect(await composer(page).inputValue()).toBe("Still here");
    await page.unrouteAll();
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").waitFor();
    await visit.close();
  });

  test("a dialog that an upgrade of the service has replaced opens after a reload, and the text stays", async () => {
    const visit = await BrowserWindow.open("/health", await Account.register());
    const { page } = visit;
    await page.goto(url);
    await composer(page).fill("Still here");
    await page.route(/\/assets\/palette-/, (route) => route.fulfill({ status: 404 }));
    await page.keyboard.press("Control+k");
    const reload = page.getByRole("button", { name: "Reload" });
    await reload.waitFor();
    await page.unrouteAll();
    await reload.press("Enter");
    await reload.waitFor({ state: "detached" });
    await expect.poll(() => composer(page).inputValue()).toBe("Still here");
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").waitFor();
    await visit.close();
  });
});

describe("changes on other devices", () => {
  test("only the newest page of a long list is asked for again; a line shows that rows continue above the list", async () => {
    const account = await Account.register();
    const ids = Array.from({ length: 60 }, () => newIdentifier("conv"));
    for (const [at, id] of ids.entries())
      await account.request("PUT", `/conversations/${id}`, { title: `Number ${at + 1}` });
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const scroller = sidebar(page).getByRole("list", { name: "Your conversations" }).locator("..");
    const line = () => scroller.evaluate((element) => getComputedStyle(element).borderTopColor);
    await sidebar(page).getByRole("link", { name: "Number 60", exact: true }).focus();
    const atTop = await line();
    await page.keyboard.press("End");
    const oldest = sidebar(page).getByRole("link", { name: "Number 1", exact: true });
    await expect
      .poll(async () => {
        await page.keyboard.press("End");
        return oldest.count();
      })
      .toBe(1);
    const list = watchRequests(page, "/conversations");
    await account.request("PUT", `/conversations/${ids[55]}/title`, { title: "Renamed" });
    await account.request("PUT", `/conversations/${ids[0]}/title`, { title: "The oldest" });
    await account.request("DELETE", `/conversations/${ids[1]}`);
    await expect.poll(() => list.length).toBeGreaterThan(0);
    await sidebar(page).getByRole("link", { name: "The oldest", exact: true }).waitFor();
    await sidebar(page).getByRole("link", { name: "Number 2", exact: true }).waitFor({ state: "detached" });
    await page.keyboard.press("Home");
    await sidebar(page).getByRole("link", { name: "Renamed", exact: true }).waitFor();
    expect(list.filter((address) => address.includes("cursor"))).toEqual([]);

    await scroller.hover();
    await page.mouse.wheel(0, -3_000);
    await expect.poll(line).toBe(atTop);
    await page.mouse.wheel(0, 300);
    await expect.poll(line).not.toBe(atTop);
    await page.mouse.wheel(0, -3_000);
    await expect.poll(line).toBe(atTop);
    await visit.close();
  });

  test("while an answer is written, a change makes the page ask for the conversation but not for its messages", async () => {
    const account = await sharedAccount();
    const open = await account.chat("Hello!");
    const answer = await pausedAnswer();
    await account.startTurn(answer.text, { conversation_id: open });
    const visit = await BrowserWindow.open(`/c/${open}`, account);
    const { page } = visit;
    await waitForAnswerText(page);
    // Everything is fetched once more when the feed starts. The page shows the first change after that.
    await account.request("PUT", `/conversations/${open}/title`, { title: "One tide a day" });
    await page.getByRole("heading", { level: 1, name: "One tide a day" }).waitFor();
    const messages = watchRequests(page, `/conversations/${open}/messages`);
    const conversation = watchRequests(page, `/conversations/${open}`);
    await account.request("PUT", `/conversations/${open}/title`, { title: "Two tides a day" });
    await page.getByRole("heading", { level: 1, name: "Two tides a day" }).waitFor();
    expect(conversation.length).toBeGreaterThan(0);
    expect(messages).toEqual([]);
    await answer.release();
    await visit.close();
  });

  test("the first words of a message are the title until the service has answered, and if its answer was stopped", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    const requests = await intercept(page, "POST", "**/chat");
    await send(page, "Plan a vegetable garden for a small balcony that faces north, please.");
    const title = "Plan a vegetable garden for a small balcony that faces…";
    await sidebar(page).getByRole("link", { name: title, exact: true }).waitFor();
    await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
    await expect.poll(() => page.title()).toBe(`${title} · Turnstone`);
    await expect.poll(() => requests.length).toBe(1);
    await requests[0]!.continue();
    await expect.poll(async () => (await account.read<{ data: object[] }>("/conversations")).data.length).toBe(1);
    await expect.poll(() => sidebar(page).getByRole("listitem").getByRole("link").count()).toBe(1);
    // Also if the first answer was stopped.
    await page.unrouteAll();
    await page.goto(`${url}/`);
    await send(page, `Tides of the northern coast [[script tokens=20000 ttft=10ms interval=30ms]]`);
    await waitForAnswerText(page);
    await stop(page).click();
    await waitForAnswerEnd(page);
    await page.reload();
    await sidebar(page)
      .getByRole("link", { name: /^Tides of the northern coast/ })
      .waitFor();
    await page.getByRole("heading", { level: 1, name: /^Tides of the northern coast/ }).waitFor();
    await visit.close();
  });
});

describe("offline", () => {
  test("a conversation that was not loaded shows its title and that the device is offline, and loads when online", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Surf" });
    const visit = await BrowserWindow.open("/", account);
    const { page, context } = visit;
    const link = sidebar(page).getByRole("link", { name: "Surf" });
    await link.waitFor();
    await context.setOffline(true);
    await link.click();
    await page.getByRole("heading", { level: 1, name: "Surf" }).waitFor();
    await expect.poll(() => page.title()).toContain("Surf · Turnstone");
    await page.getByRole("main").getByText("You're offline", { exact: true }).waitFor();
    await context.setOffline(false);
    await page.locator("[data-message]").last().waitFor();
    await visit.close();
  });
});

describe("the palette", () => {
  test("a name of the other direction is next to its icon", async () => {
    const account = await Account.register();
    await account.request("POST", "/projects", { name: "Tides" });
    await account.request("POST", "/projects", { name: "المد" });
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    for (const language of ["en", "ar"]) {
      await visit.context.addCookies([{ name: "language", value: language, url }]);
      await page.goto(`${url}/settings`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.keyboard.press("ControlOrMeta+k");
      const name = language === "en" ? "المد" : "Tides";
      await page.getByRole("dialog").getByRole("combobox").fill(name);
      const gap = await page.getByRole("option", { name }).evaluate((option, text) => {
        const all = document.createTreeWalker(option, NodeFilter.SHOW_TEXT);
        while (all.nextNode()!.nodeValue !== text);
        const range = document.createRange();
        range.selectNodeContents(all.currentNode);
        const [of, icon] = [range.getBoundingClientRect(), option.querySelector("svg")!.getBoundingClientRect()];
        return Math.max(of.left - icon.right, icon.left - of.right);
      }, name);
      expect(gap, language).toBeLessThan(20);
      await page.keyboard.press("Escape");
    }
    await visit.close();
  });

  test("lists the most recent conversations, finds others by words, and acts on the open one", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    await create(account, "Sums");
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.locator("[data-message]").last().waitFor();
    await expectRecentFirst(page);
    await renameAndDelete(page);
    await create(
      account,
      "Kill the process",
      "Hello there, Lisa",
      "Café in München",
      "Skills for killers",
      "東京の天気予報",
    );
    await expectFoundByWords(page);
    await create(account, ...Array.from({ length: 12 }, (_, at) => `Number ${at + 1}`));
    await expectActionsInView(page);
    await visit.close();
  });

  test("groups what it finds: exact names first, three messages of a conversation, with author and date", async () => {
    const account = await Account.register();
    const conversation = await account.chat("The lighthouse stands on a rock");
    for (const text of ["Who keeps the lighthouse?", "How high is the lighthouse?", "Is the lighthouse white?"])
      await account.chat(text, { conversation_id: conversation });
    await create(account, "Lighthouse walks", "Lighthouse");
    await account.request("POST", "/projects", { name: "Lighthouse project" });
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("combobox").fill("lighthouse");
    const group = (name: string) => page.getByRole("group", { name, exact: true }).getByRole("option");
    await expect.poll(() => titlesOf(group("Projects"))).toEqual(["Lighthouse project"]);
    await expect
      .poll(async () => (await titlesOf(group("Conversations"))).slice(0, 2))
      .toEqual(["Lighthouse", "Lighthouse walks"]);
    const more = group("Messages").filter({ hasText: /^\d+ more$/ });
    await more.waitFor();
    expect(await group("Messages").count()).toBe(4);
    await more.click();
    await expect.poll(() => group("Messages").filter({ hasText: "You · " }).count()).toBe(4);
    await group("Messages").filter({ hasText: "Is the lighthouse white?" }).first().click();
    await page.waitForURL((to) => to.pathname === `/c/${conversation}`);
    await page.keyboard.press("ControlOrMeta+k");
    await page.getByRole("combobox").fill("usage");
    await page.getByRole("group", { name: "Settings" }).getByRole("option", { name: "Usage" }).click();
    await page.waitForURL((to) => to.pathname === "/settings" && to.hash === "#usage");
    await visit.close();
  });

  test("names the filters and proposes a query for a misspelled one, which can be chosen", async () => {
    const account = await Account.register();
    await account.chat("The lighthouse stands on a rock");
    // The corrected words are looked up in the index, which has a new text after some seconds. The searches of an account are limited.
    await expect
      .poll(async () => (await (await account.request("GET", "/search?q=lihgthouse")).json()).did_you_mean, {
        timeout: 30_000,
        interval: 1_000,
      })
      .toBe("lighthouse");
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("dialog").getByText("kind:file").waitFor();
    await page.getByRole("combobox").fill("lihgthouse");
    await page.getByRole("option", { name: "Did you mean “lighthouse”?" }).click();
    await page.getByRole("group", { name: "Messages" }).getByRole("option").first().waitFor();
    expect(await page.getByRole("combobox").inputValue()).toBe("lighthouse");
    await visit.close();
  });

  /** Returns the texts of options without their times. */
  const titlesOf = (options: Locator) =>
    options.evaluateAll((all) =>
      all.map((one) => {
        const copy = one.cloneNode(true) as Element;
        copy.querySelector("time")?.remove();
        return copy.textContent;
      }),
    );

  async function create(account: Account, ...titles: string[]): Promise<void> {
    for (const title of titles) await account.request("PUT", `/conversations/${newIdentifier("conv")}`, { title });
  }

  /** The list starts with recent conversations, the open one is marked, and its actions follow. */
  async function expectRecentFirst(page: Page): Promise<void> {
    await page.keyboard.press("ControlOrMeta+k");
    const options = page.getByRole("option");
    await expect.poll(async () => (await titlesOf(options)).slice(0, 3)).toEqual(["Sums", "TidesOpen now", "Rename"]);
    expect(await options.locator("svg").count(), "icons").toBe(await options.count());
    await page.keyboard.press("Escape");
  }

  async function renameAndDelete(page: Page): Promise<void> {
    const choose = async (name: string) => {
      await page.keyboard.press("ControlOrMeta+k");
      await page.getByRole("dialog").getByRole("combobox").fill(name);
      await page.getByRole("option", { name, exact: true }).waitFor();
      await page.keyboard.press("Enter");
    };
    await choose("Rename");
    await page.getByRole("textbox", { name: "Title of the conversation" }).fill("Two tides a day");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Two tides a day" }).waitFor();
    await choose("Delete");
    const question = page.getByRole("dialog", { name: "Delete “Two tides a day”?" });
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "hidden" });
  }

  /** Words are found by their beginnings, the most recent conversation first, without regard to case and accents. */
  async function expectFoundByWords(page: Page): Promise<void> {
    await sidebar(page).getByRole("link", { name: "Hello there, Lisa" }).waitFor();
    await page.keyboard.press("ControlOrMeta+k");
    const found = async (typed: string) => {
      await page.getByRole("combobox").fill(typed);
      return titlesOf(page.getByRole("group", { name: "Conversations" }).getByRole("option"));
    };
    await expect.poll(() => found("kill")).toEqual(["Skills for killers", "Kill the process"]);
    await expect.poll(() => found("pro KILL")).toEqual(["Kill the process"]);
    await expect.poll(() => found("cafe mun")).toEqual(["Café in München"]);
    await expect.poll(() => found("天気")).toEqual(["東京の天気予報"]);
    await page.getByRole("combobox").fill("ill");
    await page.getByText("No matches.").waitFor();
    await page.keyboard.press("Escape");
  }

  /** The actions of the open conversation are in view, however many conversations there are. */
  async function expectActionsInView(page: Page): Promise<void> {
    await page.keyboard.press("ControlOrMeta+k");
    const conversations = page.getByRole("group", { name: "Conversations" }).getByRole("option");
    await expect
      .poll(() => titlesOf(conversations))
      .toEqual(["Number 12", "Number 11", "Number 10", "Number 9", "Number 8"]);
    const list = await page.getByRole("listbox").boundingBox();
    const last = await page.getByRole("option", { name: "Delete", exact: true }).boundingBox();
    expect(last!.y + last!.height).toBeLessThanOrEqual(list!.y + list!.height);
    await page.getByRole("combobox").fill("number");
    await expect.poll(() => conversations.count()).toBe(12);
  }
});

describe("the conversation list", () => {
  test("the dialog that confirms a deletion focuses Cancel, and Undo opens the conversation again", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Tides" });
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await page.getByRole("button", { name: "Actions for this conversation" }).press("Enter");
    await page.getByRole("menuitem", { name: "Delete" }).press("Enter");
    const dialog = page.getByRole("dialog");
    await expectFocus(dialog.getByRole("button", { name: "Cancel" }));
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.waitForURL((to) => to.pathname === "/");
    await page.getByRole("button", { name: "Undo" }).click();
    await page.waitForURL((to) => to.pathname === `/c/${conversation}`);
    await page.locator("[data-message]").last().waitFor();
    await visit.close();
  });

  test("a dialog without a field takes the focus itself", async () => {
    const visit = await BrowserWindow.open("/", await sharedAccount());
    const { page } = visit;
    await composer(page).waitFor();
    // A tooltip of a control would cover the dialog.
    await page.keyboard.press("ControlOrMeta+/");
    const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await expectFocus(dialog);
    await page.keyboard.press("Tab");
    await expectFocus(dialog.getByRole("button", { name: "Close" }));
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await visit.close();
  });
});

describe("sign-in", () => {
  test("the email field has the focus, except on touch screens", async () => {
    const visit = await BrowserWindow.open("/");
    await expectFocus(visit.page.getByLabel("Email"));
    await visit.close();
    const touch = await BrowserWindow.open("/", undefined, { viewport: phone, hasTouch: true, isMobile: true });
    await touch.page.getByLabel("Email").waitFor();
    expect(await touch.page.evaluate(() => document.activeElement === document.body)).toBe(true);
    await touch.close();
  });
});

const tooltip = (page: Page) => page.locator("[data-tooltip-box]");

/** Reports whether the top of a section of the settings is within the window. */
const inView = (page: Page, name: string) =>
  page
    .getByRole("region", { name, exact: true })
    .evaluate(
      (section) => section.getBoundingClientRect().top >= 0 && section.getBoundingClientRect().top < innerHeight,
    );

describe("settings", () => {
  test("a choice shows the new value at once and never the old one again, and the account stores it", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/settings", account);
    const { page } = visit;
    const choose = (name: string) =>
      page.getByRole("radio", { name }).evaluate((radio: HTMLInputElement) => (radio.click(), radio.checked));
    expect(await choose("Dark")).toBe(true);
    expect(await choose("Light")).toBe(true);
    await expect.poll(async () => (await account.read<{ theme: string }>("/account/settings")).theme).toBe("light");
    await intercept(page, "PUT", "**/account/settings").then(async (requests) => {
      expect(await choose("Dark")).toBe(true);
      await expect.poll(() => requests.length).toBe(1);
      await requests[0]!.fulfill(refusal(503, "unavailable"));
    });
    await page.getByText("so the change may not be saved").or(page.getByText("Couldn't save the change.")).waitFor();
    expect(await page.getByRole("radio", { name: "Light" }).isChecked()).toBe(true);
    await page.unrouteAll();
    await page.getByRole("radiogroup", { name: "Steering applies" }).getByRole("radio", { name: "Right away" }).check();
    await expect
      .poll(async () => (await account.read<Record<string, unknown>>("/account/settings"))["steering_delivery"])
      .toBe("interrupt");
    await visit.close();
  });

  test("a link in the settings shows its section, and the password is changed in a dialog", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings#security", account);
    const { page } = visit;
    const link = (name: string) =>
      page.getByRole("navigation", { name: "Settings sections" }).getByRole("link", { name, exact: true });
    await expect.poll(() => link("Security").getAttribute("aria-current")).toBe("true");
    await expect.poll(() => inView(page, "Security")).toBe(true);
    await link("Account").click();
    await expect.poll(() => inView(page, "Account")).toBe(true);
    await expect.poll(() => link("Account").getAttribute("aria-current")).toBe("true");
    await expect.poll(() => link("Security").getAttribute("aria-current")).toBeNull();
    await page.getByRole("region", { name: "Account" }).hover();
    await page.mouse.wheel(0, 5000);
    await expect.poll(() => link("Account").getAttribute("aria-current")).toBeNull();

    await page.getByRole("button", { name: "Change password" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Change password" });
    await expectFocus(dialog.getByLabel("Current password"));
    await dialog.getByLabel("Current password").fill(account.password);
    await dialog.getByLabel("New password").fill("a calm tide at noon");
    await dialog.getByRole("button", { name: "Change password" }).click();
    await dialog.waitFor({ state: "hidden" });
    await page.getByText(/Password changed/).waitFor();
    await visit.close();
  });

  test("the section that a link addresses stays the current one while the page above it is loaded", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/health", account);
    const { page } = visit;
    let release = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    await page.route("**/account/settings", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(`${url}/settings#security`);
    const link = page.getByRole("link", { name: "Security", exact: true });
    await expect.poll(() => link.getAttribute("aria-current")).toBe("true");
    const theme = page.getByRole("radiogroup", { name: "Theme" });
    expect(await theme.count(), "settings that have arrived too early").toBe(0);

    release();
    await theme.waitFor();
    await expect.poll(() => inView(page, "Security")).toBe(true);
    // A scroll event is dispatched in the frame after the scrolling.
    await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
    expect(await link.getAttribute("aria-current")).toBe("true");
    await visit.close();
  });

  test("on a touch screen the settings say that the button sends, and a touch shows no tooltip", async () => {
    const account = await sharedAccount();
    const visit = await BrowserWindow.open("/settings", account, { viewport: phone, hasTouch: true, isMobile: true });
    const { page } = visit;
    await page.getByText("On this device, the Send button sends and Enter adds a new line.").waitFor();
    await page.getByRole("button", { name: "Show sidebar" }).tap();
    await page.getByRole("button", { name: "Hide sidebar" }).waitFor();
    expect(await tooltip(page).count()).toBe(0);
    await visit.close();
  });
});

describe("a window that is 200 pixels high", () => {
  test("the drawer scrolls as a whole, and its conversations can be opened", async () => {
    const account = await sharedAccount();
    const conversation = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${conversation}/title`, { title: "Ebb" });
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await page.setViewportSize({ width: 320, height: 200 });
    await page.getByRole("button", { name: "Show sidebar" }).click();
    const rows = sidebar(page).getByRole("list", { name: "Your conversations" }).locator("..");
    expect(await rows.evaluate((element) => element.clientHeight), "height of the list").toBeGreaterThan(100);
    await page.getByRole("button", { name: "Account: Robin" }).scrollIntoViewIfNeeded();
    await sidebar(page).getByRole("link", { name: "Ebb" }).click();
    await page.waitForURL((to) => to.pathname === `/c/${conversation}`);
    await visit.close();
  });
});

describe("tooltips", () => {
  test("a button shows its name and shortcut to the pointer and to the keyboard, and Esc hides it", async () => {
    const visit = await BrowserWindow.open("/", await sharedAccount());
    const { page } = visit;
    const hide = page.getByRole("button", { name: "Hide sidebar" });
    await hide.waitFor();
    expect(await page.locator("button[title]").count(), "buttons with a tooltip of the browser").toBe(0);
    await hide.hover();
    await tooltip(page).waitFor();
    expect(await tooltip(page).innerText()).toMatch(/Hide sidebar\s*Ctrl\+Shift\+S/);
    await page.keyboard.press("Escape");
    await tooltip(page).waitFor({ state: "detached" });
    await page.mouse.move(640, 300);
    await page.keyboard.press("Tab");
    await hide.focus();
    await tooltip(page).getByText("Hide sidebar").waitFor();
    expect(await tooltip(page).getAttribute("aria-hidden")).toBe("true");
    const inside = await tooltip(page).evaluate((box) => {
      const { left, top, right, bottom } = box.getBoundingClientRect();
      return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    });
    expect(inside, "the tooltip is in the window").toBe(true);
    await page.keyboard.press("Tab");
    await tooltip(page).getByText("Hide sidebar").waitFor({ state: "detached" });
    await visit.close();
  });

  test("a tooltip hides when the pointer moves to the control under it", async () => {
    const visit = await BrowserWindow.open("/", await sharedAccount());
    const { page } = visit;
    await page.getByRole("button", { name: "Hide sidebar" }).hover();
    await tooltip(page).waitFor();
    const over = (await tooltip(page).boundingBox())!;
    const under = (await page.getByRole("link", { name: "New conversation" }).boundingBox())!;
    const y = (Math.max(over.y, under.y) + over.y + over.height) / 2;
    expect(y, "the tooltip covers the link").toBeGreaterThan(under.y);
    await page.mouse.move(over.x + over.width / 2, y, { steps: 4 });
    await tooltip(page).getByText("Hide sidebar").waitFor({ state: "detached" });
    await visit.close();
  });
});
