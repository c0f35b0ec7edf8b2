// Tests of accessibility: announcements for screen readers, the keyboard, the size of controls, phones, and other
// languages.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  atEnd,
  composer,
  expectFocus,
  fast,
  focusedMessage,
  mainHeading,
  messages,
  pausedAnswer,
  recordAnnouncements,
  scroller,
  send,
  sidebar,
  stop,
  stored,
  textOf,
  waitForAnswerEnd,
  waitForAnswerText,
  waiting,
} from "./conversation-page";
import { Account, hold, phone, url, BrowserWindow, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

const touch = { viewport: phone, isMobile: true, hasTouch: true };

describe("announcements to screen readers", () => {
  test("42 answers are announced whole, by sentence or not at all, and failures always and urgently", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await announceWholeAnswer(page);
    const conversation = new URL(page.url()).pathname.slice(3);
    await announceStop(page);
    await chooseAnnouncements(page, "Sentence by sentence", conversation);
    await announceBySentence(page, account, conversation);
    await chooseAnnouncements(page, "Off", conversation);
    await announceFailure(page);
    await visit.close();
  });
});

/** The start and the first paragraph of an answer are announced; the transcript is no live region. */
async function announceWholeAnswer(page: Page): Promise<void> {
  const heard = await recordAnnouncements(page);
  await send(page, "Hello!");
  await waitForAnswerEnd(page);
  await expect
    .poll(async () => (await heard()).map(({ text }) => text))
    .toContain(
      "Answered. Hello! It is good to hear from you. I am the scripted model of Turnstone: I answer the same way every time, which makes me a dependable partner for trying things out.",
    );
  const announced = await heard();
  const ended = announced.findIndex(({ text }) => text.startsWith("Answered."));
  const started = announced.findIndex(({ text }) => text === "Answering…");
  expect(started).toBeGreaterThanOrEqual(0);
  expect(started).toBeLessThan(ended);
  expect(announced.some(({ urgent }) => urgent)).toBe(false);
  const log = page.getByRole("log", { name: "Conversation" });
  expect(await log.getAttribute("aria-live")).toBe("off");
  expect(await log.locator("[aria-live]:not([aria-live=off]), [role=status], [role=alert]").count()).toBe(0);
}

/** A stop is not urgent. */
async function announceStop(page: Page): Promise<void> {
  const heard = await recordAnnouncements(page);
  await send(page, (await pausedAnswer()).text);
  await waitForAnswerText(page);
  await composer(page).press("Escape");
  await expect
    .poll(async () => (await heard()).filter(({ text }) => text.startsWith("You stopped")))
    .toEqual([{ urgent: false, text: "You stopped this answer." }]);
  await waitForAnswerEnd(page);
}

async function chooseAnnouncements(page: Page, choice: string, conversation: string): Promise<void> {
  await openInApp(page, "/settings");
  await page.getByRole("radio", { name: choice }).check();
  await openInApp(page, `/c/${conversation}`);
}

/** Each sentence is announced once while the answer streams. */
async function announceBySentence(page: Page, account: Account, conversation: string): Promise<void> {
  await messages(page).last().waitFor();
  const heard = await recordAnnouncements(page);
  const pieces = async () => (await heard()).map(({ text }) => text).filter((text) => text !== "Answering…");
  const holds = [`${conversation}-1`, `${conversation}-2`] as const;
  const releases = [await hold(holds[0]), await hold(holds[1])];
  await send(page, `Tell me. [[script tokens=140 ttft=10ms interval=10ms hold=40:${holds[0]} hold=100:${holds[1]}]]`);
  for (const [at, release] of releases.entries()) {
    await expect.poll(async () => (await pieces()).length).toBeGreaterThan(at);
    await release();
  }
  await expect.poll(async () => (await heard()).some(({ text }) => text.startsWith("Answered."))).toBe(true);
  const announced = await pieces();
  expect(announced.length, "pieces").toBeGreaterThan(2);
  expect(announced[0]).toMatch(/^The ruddy turnstone .*\.$/);
  const whole = announced.join(" ").replace("Answered. ", "");
  const words = (text: string) => text.split(/\s+/).filter((word) => word !== "");
  expect(words(whole)).toEqual(words(textOf((await stored(account, conversation)).at(-1)!)));
}

/** A failure is announced urgently, even with announcements off. */
async function announceFailure(page: Page): Promise<void> {
  await messages(page).last().waitFor();
  const heard = await recordAnnouncements(page);
  await send(page, "Fail. [[script tokens=40 ttft=10ms fail=0]]");
  await messages(page).last().getByText("Can't reach the model. Your message is saved.").waitFor();
  await expect.poll(heard).toContainEqual({ urgent: true, text: "Can't reach the model. Your message is saved." });
  expect((await heard()).filter(({ text }) => text.startsWith("Answer"))).toEqual([]);
}

describe("the keyboard", () => {
  test("41 and 42 every listed shortcut works, and the focus is where it is expected, visible and not covered", async () => {
    const account = await Account.register();
    const conversation = await account.chat("Write a small function in Go that greets somebody.");
    await account.chat("Hello!", { conversation_id: conversation });
    const other = await account.chat("Thanks!");
    await nameConversations(account, conversation, other);
    const visit = await BrowserWindow.open(`/c/${conversation}`, account);
    const { page } = visit;
    await pressEveryShortcut(page, conversation, other);
    await openInApp(page, `/c/${await account.chat("Hello!")}`);
    await keepFocusInComposer(page);
    await page.setViewportSize({ width: 1280, height: 600 });
    await openInApp(page, `/c/${await conversationWithManyControls(account)}`);
    await visitEveryControl(page);
    await visit.close();
  });
});

/** Names two conversations: Greeting, and Thanking, which is the newer one. */
async function nameConversations(account: Account, greeting: string, thanking: string): Promise<void> {
  await account.request("PUT", `/conversations/${greeting}/title`, { title: "Greeting" });
  await account.request("PUT", `/conversations/${thanking}/title`, { title: "Thanking" });
}

async function pressEveryShortcut(page: Page, conversation: string, other: string): Promise<void> {
  const { keyboard } = page;
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  await messages(page).nth(3).waitFor();
  await expectFocus(composer(page));
  await keyboard.press("ControlOrMeta+Shift+c");
  await page.getByText("Code copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toMatch(/^package main\n/);

  // Moves the focus from the composer to the conversation, then through its messages.
  await keyboard.press("Shift+Tab");
  await expect.poll(() => focusedMessage(page)).toBe(3);
  for (const [key, at] of [
    ["k", 2],
    ["k", 1],
    ["j", 2],
    ["k", 1],
    ["k", 0],
    ["k", 0],
    ["j", 1],
  ] as const) {
    await keyboard.press(key);
    await expect.poll(() => focusedMessage(page)).toBe(at);
    await expect
      .poll(() =>
        messages(page)
          .nth(at)
          .evaluate(
            (message) =>
              message.getBoundingClientRect().bottom > 0 && message.getBoundingClientRect().top < innerHeight,
          ),
      )
      .toBe(true);
  }
  // While single-letter shortcuts are off, letters do nothing.
  await keyboard.press("ControlOrMeta+/");
  const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await help.getByRole("checkbox", { name: "Single-letter shortcuts" }).press("Space");
  await keyboard.press("Escape");
  await help.waitFor({ state: "hidden" });
  await expect.poll(() => focusedMessage(page)).toBe(1);
  await keyboard.press("j");

  // The shortcut opens and closes the palette; an option opens a conversation.
  await keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").waitFor();
  await keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").waitFor({ state: "hidden" });
  await expect.poll(() => focusedMessage(page), { message: "j was switched off" }).toBe(1);
  await keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").fill("Thanking");
  await page.getByRole("option", { name: "Thanking" }).waitFor();
  await keyboard.press("Enter");
  await page.waitForURL(`**/c/${other}`);

  // The list of conversations.
  const row = (title: string) => sidebar(page).getByRole("link", { name: new RegExp(`^${title}`) });
  await row("Thanking").focus();
  for (const [key, title] of [
    ["ArrowDown", "Greeting"],
    ["ArrowUp", "Thanking"],
    ["End", "Greeting"],
    ["Home", "Thanking"],
    ["ArrowDown", "Greeting"],
  ] as const) {
    await keyboard.press(key);
    await expectFocus(row(title));
  }
  await keyboard.press("Delete");
  const question = page.getByRole("dialog", { name: "Delete “Greeting”?" });
  await question.getByText(/^Deletes 4 messages/).waitFor();
  await keyboard.press("Escape");
  await question.waitFor({ state: "hidden" });
  await expectFocus(row("Greeting"));
  await keyboard.press("Enter");
  await page.waitForURL(`**/c/${conversation}`);
  await keyboard.press("ControlOrMeta+Shift+o");
  await page.waitForURL((to) => to.pathname === "/");
  await expectFocus(composer(page));
}

/** The composer has the focus after every way to send and to stop, and after the palette closes. */
async function keepFocusInComposer(page: Page): Promise<void> {
  const expectComposerFocus = () => expectFocus(composer(page));
  await messages(page).last().waitFor();
  await expectComposerFocus();
  await composer(page).fill(`Hello! ${fast(20)}`);
  await page.getByRole("button", { name: "Send", exact: true }).press("Enter");
  await expectComposerFocus();
  await messages(page)
    .nth(3)
    .getByText(/^The ruddy turnstone/)
    .waitFor();
  await waitForAnswerEnd(page);
  await expectComposerFocus();

  await send(page, (await pausedAnswer()).text);
  await waitForAnswerText(page);
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("combobox").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("combobox").waitFor({ state: "hidden" });
  await expectComposerFocus();
  expect(await stop(page).isVisible(), "Esc was for the palette").toBe(true);
  await composer(page).fill("And then?");
  const menuButton = page.getByRole("button", { name: "More ways to send" });
  await menuButton.press("Enter");
  await page.getByRole("menu").waitFor();
  await page.keyboard.press("Escape");
  await expectFocus(menuButton);
  await menuButton.press("Enter");
  await page.getByRole("menuitem", { name: /^Queue/ }).press("Enter");
  await waiting(page).getByText("And then?").waitFor();
  await expectComposerFocus();
  await page.getByRole("button", { name: "More ways to stop" }).press("Enter");
  await page.getByRole("menuitem", { name: /^Stop and discard the queue/ }).press("Enter");
  await expectComposerFocus();
  await waitForAnswerEnd(page);
  await expectComposerFocus();

  await send(page, (await pausedAnswer()).text);
  await waitForAnswerText(page);
  await stop(page).press("Enter");
  await expectComposerFocus();
  await waitForAnswerEnd(page);
  await expectComposerFocus();
}

async function conversationWithManyControls(account: Account): Promise<string> {
  const conversation = await account.chat(
    "Show me. [[script tokens=300 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]",
  );
  await account.chat("Make me a table, and write $e^{i\\pi}$.", { conversation_id: conversation });
  // The last answer is much higher than the window, so that the messages before it are far from the visible area.
  for (const text of ["Write a small function in Python.", "Hello!", `More. ${fast(3000)}`])
    await account.chat(text, { conversation_id: conversation });
  return conversation;
}

/** The focused element is visible and not covered by the composer. */
async function visitEveryControl(page: Page): Promise<void> {
  await messages(page).nth(9).waitFor();
  const [first, last] = ["A Skip to content", "TEXTAREA Message"];
  for (const [key, start, to] of [
    ["Shift+Tab", composer(page), first],
    ["Tab", page.getByRole("link", { name: "Skip to content" }), last],
  ] as const) {
    await start.focus();
    const visited = new Set<number>();
    let name = "";
    for (let i = 0; i < 150 && name !== to; i++) {
      await page.keyboard.press(key);
      const at = await focused(page);
      name = at.name;
      if (name === to) break;
      if (at.message !== null) visited.add(at.message);
      expect(at.visible, `${at.name} is visible`).toBe(true);
      expect(at.covered, `${at.name} is covered by the composer`).toBe(false);
    }
    expect(name, "the last focused element").toBe(to);
    expect(
      [...visited].sort((a, b) => a - b),
      "the visited messages",
    ).toEqual([...Array(10).keys()]);
  }
}

interface Focused {
  name: string;
  /** The index of the message that has the focus; null: none. */
  message: number | null;
  /** Whether a part of it is visible. */
  visible: boolean;
  /** Whether the composer covers it. */
  covered: boolean;
}

async function focused(page: Page): Promise<Focused> {
  return page.evaluate(() => {
    const element = document.activeElement!;
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const points = [0.1, 0.5, 0.9].flatMap((x) =>
      [0.02, 0.1, 0.5, 0.9, 0.98].map((y) =>
        document.elementFromPoint(left + (right - left) * x, top + (bottom - top) * y),
      ),
    );
    const form = document.querySelector("textarea")!.closest("form")!;
    const field = form.getBoundingClientRect();
    const at = [...document.querySelectorAll("[data-message]")].findIndex((message) => message.contains(element));
    const shown = element.closest("[data-scroll]")?.getBoundingClientRect().bottom ?? innerHeight;
    return {
      name: `${element.tagName} ${element.getAttribute("aria-label") ?? element.textContent?.slice(0, 40) ?? ""}`,
      message: at < 0 ? null : at,
      visible: points.some((point) => point !== null && element.contains(point)),
      covered:
        !form.contains(element) && element.closest("[role=log]") !== null && Math.min(bottom, shown) > field.top + 1,
    };
  });
}

describe("the size of controls", () => {
  test("42 every control is at least 24 by 24 pixels, on a desktop", async () => {
    const visit = await BrowserWindow.open("/");
    const { page } = visit;
    await page.getByLabel("Email").waitFor();
    expect(await undersizedControls(page), "signing in").toEqual([]);
    const account = await Account.register();
    await visit.context.addCookies([account.cookie]);
    await page.goto(`${url}/c/${await conversationDuringAnswer(account)}`);
    await expectLargeControls(page);
    await expectLargeControlsOnPages(page);
    await visit.close();
  });
});

/** A conversation with each kind of control: it has tools, code, versions, a streaming answer and a queued message. */
async function conversationDuringAnswer(account: Account): Promise<string> {
  await account.storeFile("tides.txt");
  const conversation = await account.chat(
    "Show me. [[script tokens=60 ttft=0ms interval=0ms reasoning=30 tool=calculate:10:ok tool=calculate:10:fail code=go]]",
  );
  await account.chat(`Once. ${fast(30)}`, { conversation_id: conversation });
  const { message_id } = (await stored(account, conversation))[2]!;
  await account.chat(`Again. ${fast(30)}`, { conversation_id: conversation, branch: { message_id, mode: "edit" } });
  await account.startTurn((await pausedAnswer()).text, { conversation_id: conversation });
  await account.request("POST", "/chat", {
    conversation_id: conversation,
    input: [{ type: "text", text: "And this comes next." }],
    if_busy: "queue",
  });
  return conversation;
}

async function expectLargeControls(page: Page): Promise<void> {
  await waiting(page).waitFor();
  await stop(page).waitFor();
  await composer(page).fill("More");
  await page.getByRole("button", { name: "More ways to send" }).waitFor();
  expect(await undersizedControls(page), "a conversation").toEqual([]);
  await page.getByRole("button", { name: "More ways to stop" }).press("Enter");
  await page.getByRole("menu").waitFor();
  expect(await undersizedControls(page), "a menu").toEqual([]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("ControlOrMeta+/");
  await page.getByRole("dialog").waitFor();
  expect(await undersizedControls(page), "the shortcut help").toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
}

async function expectLargeControlsOnPages(page: Page): Promise<void> {
  for (const path of ["/", "/settings", "/library", "/c/conv_01h2xcejqtf2nbrexx3vqjhp41"]) {
    await openInApp(page, path);
    await mainHeading(page).waitFor();
    expect(await undersizedControls(page), path).toEqual([]);
  }
}

/** Returns the controls that are too small; links within a sentence are exempt (WCAG 2.5.8). */
async function undersizedControls(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const all = [
      ...document.querySelectorAll<HTMLElement>(
        "button, a[href], select, [role=menuitem], [role=menuitemradio], [role=option]",
      ),
    ];
    const shown = all.filter(
      (one) => one.checkVisibility({ visibilityProperty: true }) && getComputedStyle(one).display !== "inline",
    );
    if (shown.length < 3) return [`only ${shown.length} controls are shown`];
    return shown.flatMap((one) => {
      const { width, height } = one.getBoundingClientRect();
      return width < 24 || height < 24
        ? [`${one.tagName} ${one.getAttribute("aria-label") ?? one.textContent} ${width}×${height}`]
        : [];
    });
  });
}

describe("a phone", () => {
  test("42 and 45 controls and fields are large, the sidebar is a drawer, and pages fit the visual viewport and the safe areas", async () => {
    const visit = await BrowserWindow.open("/", undefined, touch);
    const { page } = visit;
    await page.getByLabel("Email").waitFor();
    expect(await undersizedControls(page), "signing in").toEqual([]);
    await expectLargeFont(page.getByLabel("Email"));
    await expectLargeFont(page.getByLabel("Password", { exact: true }));

    const account = await Account.register();
    const tides = await account.chat("Hello!");
    await account.request("PUT", `/conversations/${tides}/title`, { title: "Tides" });
    await visit.context.addCookies([account.cookie]);
    await page.goto(`${url}/c/${await conversationDuringAnswer(account)}`);
    await skipSidebar(page);
    await expectLargeControls(page);
    await page.getByRole("button", { name: "Show sidebar" }).click();
    await sidebar(page).getByRole("link").nth(2).waitFor();
    expect(await undersizedControls(page), "the drawer").toEqual([]);
    await page.keyboard.press("Escape");
    await sidebar(page).waitFor({ state: "hidden" });
    await expectLargeControlsOnPages(page);
    await openInApp(page, "/");
    await useDrawer(page, tides);
    await openInApp(page, `/c/${await account.chat(`Hello! ${fast(600)}`)}`);
    await fitPhone(page);
    await visit.close();
  });
});

/** The skip link is the first tab stop of a page that was loaded; on a phone no field takes the focus automatically. */
async function skipSidebar(page: Page): Promise<void> {
  await messages(page).last().waitFor();
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to content" });
  await expectFocus(skip);
  await expect.poll(() => skip.evaluate((link) => link.getBoundingClientRect().top)).toBeGreaterThanOrEqual(0);
  await page.keyboard.press("Enter");
  await expectFocus(page.getByRole("main"));
  await page.keyboard.press("Tab");
  expect(
    await page
      .getByRole("main")
      .evaluate((main) => main !== document.activeElement && main.contains(document.activeElement)),
  ).toBe(true);
}

/** The drawer traps the focus; Esc closes it and returns the focus. */
async function useDrawer(page: Page, conversation: string): Promise<void> {
  const opener = page.getByRole("button", { name: "Show sidebar" });
  const drawer = page.getByRole("dialog", { name: "Conversations" });
  expect(await sidebar(page).count()).toBe(0);
  await opener.press("Enter");
  await drawer.waitFor();
  const stops = new Set<string>();
  for (let i = 0; i < 20; i++) {
    await page.keyboard.press("Tab");
    const at = await drawer.evaluate((element) =>
      element.contains(document.activeElement)
        ? (document.activeElement!.getAttribute("aria-label") ?? document.activeElement!.textContent!)
        : null,
    );
    expect(at, "the focus is in the drawer").not.toBeNull();
    stops.add(at!);
  }
  expect(stops.size).toBeGreaterThan(4);
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "hidden" });
  await expectFocus(opener);
  await opener.tap();
  await drawer.getByRole("link", { name: /^Tides/ }).tap();
  await page.waitForURL(`**/c/${conversation}`);
  await drawer.waitFor({ state: "hidden" });
}

/** Fields do not cause zooming, and the page fits the visual viewport and the safe areas. */
async function fitPhone(page: Page): Promise<void> {
  await messages(page).last().waitFor();
  await expectLargeFont(composer(page));
  const meta = await page.locator("meta[name=viewport]").getAttribute("content");
  expect(meta).toContain("interactive-widget=resizes-content");
  expect(meta).toContain("viewport-fit=cover");
  expect(meta).not.toMatch(/maximum-scale|user-scalable/);

  // The page is as high as the space that a keyboard leaves, without any script.
  for (const height of [phone.height, 520, phone.height]) {
    await page.setViewportSize({ width: phone.width, height });
    await expect
      .poll(() =>
        page.getByRole("main").evaluate((main) => main.getBoundingClientRect().height - visualViewport!.height),
      )
      .toBe(0);
    expect(await page.evaluate(() => visualViewport!.height)).toBe(height);
    expect(await composer(page).evaluate((field) => field.getBoundingClientRect().bottom)).toBeLessThan(height);
    expect(
      await page.evaluate(
        () => (window.scrollTo(0, 400), [scrollX, scrollY, document.documentElement.scrollHeight - innerHeight]),
      ),
    ).toEqual([0, 0, 0]);
  }

  const device = await page.context().newCDPSession(page);
  await device.send("Emulation.setSafeAreaInsetsOverride", { insets: { top: 47, bottom: 34, left: 0, right: 0 } });
  const form = page.getByRole("form", { name: "Write a message" });
  await expect
    .poll(() => form.evaluate((element) => innerHeight - element.getBoundingClientRect().bottom))
    .toBeGreaterThanOrEqual(34);
  const opener = page.getByRole("button", { name: "Show sidebar" });
  expect(await opener.evaluate((element) => element.getBoundingClientRect().top)).toBeGreaterThanOrEqual(47);
  await opener.tap();
  const hide = page.getByRole("button", { name: "Hide sidebar" });
  await hide.waitFor();
  expect(await hide.evaluate((element) => element.getBoundingClientRect().top)).toBeGreaterThanOrEqual(47);
  const accountButton = page.getByRole("button", { name: /^Account: Robin/ });
  expect(
    await accountButton.evaluate((element) => innerHeight - element.getBoundingClientRect().bottom),
  ).toBeGreaterThanOrEqual(34);
}

const expectLargeFont = async (field: Locator) =>
  expect(await field.evaluate((element) => parseFloat(getComputedStyle(element).fontSize))).toBeGreaterThanOrEqual(16);

const languages = [
  {
    language: "ar",
    field: "الرسالة",
    halt: "إيقاف",
    groups: ["المشاريع", "اليوم", "أمس", "آخر 7 أيام", "آخر 30 يومًا", "مارس 2020"],
    two: /^ستُحذف هذه المحادثة \(رسالتان\)/,
    jump: ["الانتقال إلى الأحدث (رسالتان جديدتان)", "الانتقال إلى الأحدث (4 رسائل جديدة)"],
  },
  {
    language: "ja",
    field: "メッセージ",
    halt: "停止",
    groups: ["プロジェクト", "今日", "昨日", "過去7日間", "過去30日間", "2020年3月"],
    two: /^2件のメッセージ/,
    jump: ["最新へ移動（新着2件）", "最新へ移動（新着4件）"],
  },
] as const;

type Language = (typeof languages)[number];

describe("other languages", () => {
  test("41 and 43 days, months and counts are written in the chosen language, and shortcuts match by key position", async () => {
    const account = await Account.register();
    const conversation = await account.chat(`First. ${fast(900)}`);
    const short: string[] = [];
    for (let i = 0; i < 4; i++) short.push(await account.chat(`Hello! ${fast(5)}`));
    const visit = await BrowserWindow.open("/robots.txt", account);
    const { page, context } = visit;
    for (const chosen of languages) {
      await context.addCookies([{ name: "language", value: chosen.language, url }]);
      await showDates(page, chosen);
      await openInApp(page, `/c/${conversation}`);
      await showCounts(visit, account, conversation, chosen);
      if (chosen.language !== "ar") continue;
      await nameConversations(account, short[2]!, short[3]!);
      await openInApp(page, `/c/${short[2]!}`);
      await useArabicKeyboard(page);
    }
    await visit.close();
  });
});

/** Opens the settings with a conversation of each group of the list, and expects the groups and the number of messages. */
async function showDates(page: Page, { groups, two }: Language): Promise<void> {
  const day = 86_400_000;
  const ages = [0, day, 3 * day, 20 * day].map((age) => new Date(Date.now() - age).toISOString());
  await page.route(/\/conversations\?/, async (route) => {
    const response = await route.fetch();
    const list = (await response.json()) as { data: object[] };
    const data = list.data.map((one, at) => ({ ...one, last_activity_at: [...ages, "2020-03-05T12:00:00.000Z"][at] }));
    await route.fulfill({ response, json: { ...list, data } });
  });
  await page.goto(`${url}/settings`);
  const headings = page.getByRole("navigation").getByRole("heading", { level: 2 });
  await headings.nth(5).waitFor();
  expect((await headings.allInnerTexts()).map((text) => text.replace(/[\u200e\u200f]/g, ""))).toEqual(groups);

  await page.locator("[data-conversation]").last().focus();
  await page.keyboard.press("Delete");
  const question = page.getByRole("dialog");
  await question.getByText(two).waitFor();
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "hidden" });
  await page.unrouteAll({ behavior: "ignoreErrors" });
}

/** Counts the new messages of another tab. */
async function showCounts(
  visit: BrowserWindow,
  account: Account,
  conversation: string,
  { field, halt, jump }: Language,
): Promise<void> {
  const { page } = visit;
  await messages(page).nth(1).waitFor();
  await atEnd(page);
  await scroller(page).evaluate((element) => element.scrollTo(0, 0));
  const second = await visit.tab(`/c/${conversation}`);
  for (const name of jump) {
    const box = second.getByRole("textbox", { name: field, exact: true });
    await box.fill(`Hello! ${fast(5)}`);
    await box.press("Enter");
    await page.getByRole("button", { name, exact: true }).waitFor();
    await expect.poll(() => stored(account, conversation).then((all) => all.at(-1)!.status)).toBe("complete");
    await second.getByRole("button", { name: halt, exact: true }).waitFor({ state: "hidden" });
  }
  await second.close();
}

/** On an Arabic keyboard, shortcuts match by key position, and arrow keys keep their direction. */
async function useArabicKeyboard(page: Page): Promise<void> {
  await messages(page).nth(1).waitFor();
  expect(await page.evaluate(() => document.documentElement.dir)).toBe("rtl");
  const press = (key: string, code: string, ctrlKey = false) =>
    page.evaluate(
      ([key, code, ctrlKey]) =>
        void document.activeElement!.dispatchEvent(
          new KeyboardEvent("keydown", { key, code, ctrlKey, bubbles: true, cancelable: true }),
        ),
      [key, code, ctrlKey] as const,
    );
  await page.keyboard.press("Shift+Tab");
  await expect.poll(() => focusedMessage(page)).toBe(1);
  await press("ن", "KeyK");
  await expect.poll(() => focusedMessage(page)).toBe(0);
  await press("ت", "KeyJ");
  await expect.poll(() => focusedMessage(page)).toBe(1);
  await press("ن", "KeyK", true);
  await page.getByRole("combobox").waitFor();
  await page.keyboard.press("Escape");
  const row = (title: string) => page.getByRole("navigation").getByRole("link", { name: new RegExp(`^${title}`) });
  await row("Thanking").focus();
  await page.keyboard.press("ArrowDown");
  await expectFocus(row("Greeting"));
  await page.keyboard.press("ArrowUp");
  await expectFocus(row("Thanking"));
}
