// Tests of the custom instructions of the account in the settings.
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessibleOnDesktopAndPhone } from "./axe";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

const field = (page: Page) => page.getByLabel("Custom instructions");

test("instructions are stored with a button, and another device shows them and cannot replace them unseen", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/settings#chat", account);
  const { page } = visit;
  const other = await BrowserWindow.open("/settings#chat", account);
  await field(other.page).waitFor();
  await field(page).fill("I am a nurse.");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await account.read("/account/instructions")).toMatchObject({ content: "I am a nurse.", version: 1 });
  await expect.poll(() => field(other.page).inputValue()).toBe("I am a nurse.");
  await expectAccessibleOnDesktopAndPhone(page, "the settings with instructions");

  await field(page).fill("I am a cook.");
  await field(other.page).fill("I am a pilot.");
  await other.page.getByRole("button", { name: "Save", exact: true }).click();
  await other.page.getByText("Saved", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Another device changed the instructions.").waitFor();
  await page.getByRole("button", { name: "Use the other version" }).click();
  await expect.poll(() => field(page).inputValue()).toBe("I am a pilot.");
  await other.close();
  await visit.close();
});

test("what is typed while instructions are being stored stays, and is stored after them", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/settings#chat", account);
  const { page } = visit;
  const save = page.getByRole("button", { name: "Save", exact: true });
  let release = (): void => {};
  const released = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/account\/instructions$/, async (route) => {
    if (route.request().method() === "PUT") await released;
    await route.continue();
  });
  await field(page).fill("I am a nurse.");
  await save.click();
  await field(page).fill("I am a nurse. Be brief.");
  release();
  await page.getByText("Saved", { exact: true }).waitFor();
  expect(await field(page).inputValue()).toBe("I am a nurse. Be brief.");
  await save.click();
  await expect
    .poll(() => account.read("/account/instructions"))
    .toMatchObject({ content: "I am a nurse. Be brief.", version: 2 });
  await visit.close();
});
