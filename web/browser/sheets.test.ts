// Tests of menus: on a phone they are sheets, which swipes, Back, Escape and a touch outside close; a long press on a message opens its
// menu; and an open menu is accessible.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { composer, expectFocus, messages, sidebar } from "./conversation-page";
import { Account, BrowserWindow, desktop, phone, withBrowser } from "./harness";
import { importConversation } from "./long-conversation";

withBrowser();

const touch = { viewport: phone, isMobile: true, hasTouch: true };
const texts = [
  "Why are there two tides?",
  "The moon pulls.\n\n[Both sides](https://example.org/moon) of the sea rise.",
];

async function open(options: object): Promise<{ visit: BrowserWindow; page: Page; conversation: string }> {
  const account = await Account.register();
  const conversation = await importConversation(account, "Tides", texts);
  const visit = await BrowserWindow.open(`/c/${conversation}`, account, options);
  await messages(visit.page).nth(1).waitFor();
  return { visit, page: visit.page, conversation };
}

const menu = (page: Page) => page.getByRole("menu");
const actions = (page: Page, message = 1) => messages(page).nth(message).getByRole("button", { name: "More actions" });

/** Moves a finger over an element: down by a distance in pixels, in steps. */
const swipeDown = (element: Locator, distance: number) =>
  element.evaluate((target, length) => {
    const at = (clientY: number) => new Touch({ identifier: 1, target, clientX: 100, clientY });
    const send = (type: string, touches: Touch[]) =>
      target.dispatchEvent(new TouchEvent(type, { bubbles: true, cancelable: true, touches, changedTouches: [at(0)] }));
    send("touchstart", [at(500)]);
    for (let moved = 0; moved <= length; moved += 10) send("touchmove", [at(500 + moved)]);
    send("touchend", []);
  }, distance);

/** Rests a finger on the middle of an element until the returned function lifts it. */
async function press(page: Page, element: Locator): Promise<() => Promise<unknown>> {
  const { x, y, width, height } = (await element.boundingBox())!;
  const input = await page.context().newCDPSession(page);
  const touchPoints = [{ x: x + width / 2, y: y + height / 2 }];
  await input.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints });
  return () => input.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
}

describe("45 on a phone, a menu is a sheet", () => {
  test("at the lower edge, which Escape, a touch outside, a swipe and Back close", async () => {
    const { visit, page, conversation } = await open(touch);
    await actions(page).tap();
    await menu(page).waitFor();
    const box = async () => {
      const { x, y, width, height } = (await menu(page).boundingBox())!;
      return [x, width, Math.round(y + height)];
    };
    await expect.poll(box).toEqual([0, phone.width, phone.height]); // it is measured before it is placed
    await page.keyboard.press("Escape");
    await menu(page).waitFor({ state: "hidden" });
    await expectFocus(actions(page));

    await actions(page).tap();
    await menu(page).waitFor();
    await page.touchscreen.tap(200, 100);
    await menu(page).waitFor({ state: "hidden" });
    await expectFocus(actions(page));

    await actions(page).tap();
    await menu(page).waitFor();
    await swipeDown(menu(page), 40);
    await menu(page).waitFor();
    expect(await menu(page).evaluate((sheet) => (sheet as HTMLElement).style.translate)).toBe("");
    await swipeDown(menu(page), 150);
    await menu(page).waitFor({ state: "hidden" });

    await actions(page).tap();
    await menu(page).waitFor();
    await page.waitForFunction(() => (history.state as { inFront?: number } | null)?.inFront === 1);
    await page.goBack();
    await menu(page).waitFor({ state: "hidden" });
    expect(new URL(page.url()).pathname).toBe(`/c/${conversation}`);
    await visit.close();
  });

  test("in a narrow window, the press that opens it at the place of the button selects no item", async () => {
    const { visit, page } = await open({ viewport: phone });
    const button = page.getByRole("button", { name: "Add files" });
    const { x, y, width, height } = (await button.boundingBox())!;
    await button.hover();
    await page.mouse.down();
    const isUnderPointer = () =>
      page.evaluate(
        ([left, top]) => Boolean(document.elementFromPoint(left!, top!)?.closest('[role="menu"]')),
        [x + width / 2, y + height / 2],
      );
    await expect.poll(isUnderPointer).toBe(true);
    await page.mouse.up();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    await menu(page).waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.getByRole("menuitem", { name: "Add from library" }).click();
    await page.getByRole("dialog").waitFor();
    await visit.close();
  });

  test("an item acts, and an item that opens a dialog leaves nothing in front of it", async () => {
    const { visit, page } = await open(touch);
    await actions(page).tap();
    await page.getByRole("menuitem", { name: "Quote" }).tap();
    await expect.poll(() => composer(page).inputValue()).toContain("> The moon pulls.");
    await actions(page).tap();
    await page.getByRole("menuitem", { name: "Share up to here" }).tap();
    await page.getByRole("dialog").waitFor();
    expect(await menu(page).count()).toBe(0);
    await visit.close();
  });
});

describe("45 a long press on a message", () => {
  test("opens its menu, except on text that can be selected and on links", async () => {
    const { visit, page } = await open(touch);
    const own = messages(page).nth(0).getByText(texts[0]!);
    const lift = await press(page, own);
    await menu(page).waitFor();
    await lift();
    await page.getByRole("menuitem", { name: "Select text" }).tap();
    await menu(page).waitFor({ state: "hidden" });
    await expect.poll(() => page.evaluate(() => getSelection()?.toString())).toBe(texts[0]);

    await page.evaluate(() => getSelection()?.removeAllRanges());
    const answer = messages(page).nth(1);
    const paragraph = answer.getByText("The moon pulls.");
    const liftAgain = await press(page, paragraph); // beside its text
    await menu(page).waitFor();
    await liftAgain();
    await page.keyboard.press("Escape");
    await menu(page).waitFor({ state: "hidden" });

    await page.clock.install();
    const link = answer.getByRole("link", { name: "Both sides" });
    for (const one of [paragraph, link]) {
      const box = (await one.boundingBox())!;
      await one.evaluate(
        (target, [x, y]) => {
          const finger = new Touch({ identifier: 1, target, clientX: x!, clientY: y! });
          target.dispatchEvent(new TouchEvent("touchstart", { bubbles: true, touches: [finger] }));
        },
        [box.x + 10, box.y + box.height / 2],
      );
      await page.clock.runFor(2_000);
      expect(await menu(page).count()).toBe(0);
    }
    await visit.close();
  });

  test("is none when the finger moves, as it does to scroll", async () => {
    const { visit, page } = await open(touch);
    await page.clock.install();
    await messages(page)
      .nth(0)
      .getByText(texts[0]!)
      .evaluate((target) => {
        const at = (clientY: number) => new Touch({ identifier: 1, target, clientX: 300, clientY });
        target.dispatchEvent(new TouchEvent("touchstart", { bubbles: true, touches: [at(100)] }));
        target.dispatchEvent(new TouchEvent("touchmove", { bubbles: true, touches: [at(130)] }));
      });
    await page.clock.runFor(2_000);
    expect(await menu(page).count()).toBe(0);
    await visit.close();
  });
});

describe("42 an open menu is accessible", () => {
  for (const [kind, options] of Object.entries({ desktop: { viewport: desktop }, phone: touch }))
    test(`on a ${kind}, with the page behind it`, async () => {
      const { visit, page } = await open(options);
      await messages(page).nth(1).hover();
      for (const button of [
        actions(page),
        page.getByRole("button", { name: "Add files" }),
        page.getByRole("button", { name: /^Model profile/ }),
        page.getByRole("button", { name: "Tools" }),
      ]) {
        await button.press("Enter");
        await menu(page).waitFor();
        await expectAccessibleInBothColorSchemes(page, `the menu of ${String(button)}`);
        await page.keyboard.press("Escape");
        await menu(page).waitFor({ state: "hidden" });
        await expectFocus(button);
      }
      await visit.close();
    });

  test("with a mouse, a click outside only closes it and returns the focus", async () => {
    const { visit, page, conversation } = await open({ viewport: desktop });
    await messages(page).nth(1).hover();
    await actions(page).click();
    await menu(page).waitFor();
    const link = (await sidebar(page).getByRole("link", { name: "New conversation" }).boundingBox())!;
    await page.mouse.click(link.x + link.width / 2, link.y + link.height / 2);
    await menu(page).waitFor({ state: "hidden" });
    await expectFocus(actions(page));
    expect(new URL(page.url()).pathname).toBe(`/c/${conversation}`);
    await visit.close();
  });
});
