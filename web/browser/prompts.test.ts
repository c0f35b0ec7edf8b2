// Tests of prompts: their list in the settings and in a project, and their insertion into messages.
import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessible, expectAccessibleOnDesktopAndPhone } from "./axe";
import { composer, expectFocus, messages } from "./conversation-page";
import { Account, BrowserWindow, phone, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

const options = (page: Page) => page.getByRole("listbox", { name: "Prompts" }).getByRole("option");
const dialog = (page: Page) => page.getByRole("dialog");
const section = (page: Page) => page.getByRole("region", { name: "Prompts" });

async function write(page: Page, name: string, text: string, description = ""): Promise<void> {
  await section(page).getByRole("button", { name: "New prompt" }).click();
  await expectFocus(dialog(page).getByLabel("Name"));
  await page.keyboard.type(name);
  await dialog(page).getByLabel("Description").fill(description);
  await dialog(page).getByLabel("Text").fill(text);
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect.poll(() => dialog(page).count()).toBe(0);
}

describe("prompts", () => {
  test("one is created, inserted with its variables by typing /, edited and sent", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/settings#prompts", account);
    const { page } = visit;
    const other = await BrowserWindow.open("/settings#prompts", account);
    await write(page, "translate this", "Translate into {{language:French}}:\n\n{{text}} {{#if}}", "Into any language");
    await page.getByText("Saved. Type /translate-this to insert it.").waitFor();
    await section(other.page).getByText("/translate-this").waitFor(); // the name has no space, and the other device shows it
    await write(page, "sum", "Sum up in three sentences: ");
    await expectAccessibleOnDesktopAndPhone(page, "the settings with prompts");

    await openInApp(page, "/");
    await composer(page).click();
    await page.keyboard.type("/");
    await expect.poll(() => options(page).count()).toBe(2);
    await page.keyboard.type("tr");
    await expect.poll(() => options(page).allInnerTexts()).toEqual(["/translate-this\nInto any language"]);
    await expectAccessible(page, "the list of prompts");
    await page.keyboard.press("Enter");
    await expectFocus(dialog(page).getByLabel("language"));
    expect(await dialog(page).getByLabel("language").inputValue()).toBe("French");
    expect(await dialog(page).getByRole("textbox").count()).toBe(2);
    await expectAccessible(page, "the dialog with the variables");
    await page.keyboard.type("Frisian");
    await page.keyboard.press("Tab");
    await page.keyboard.type("Good tides.");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("Bad tides.");
    await page.keyboard.press("Enter");
    await expectFocus(composer(page));
    const filled = "Translate into Frisian:\n\nGood tides.\nBad tides. {{#if}}";
    expect(await composer(page).inputValue()).toBe(filled);
    expect(await messages(page).count()).toBe(0); // it is not sent by itself
    await page.keyboard.press("Control+z");
    expect(await composer(page).inputValue()).toBe("/tr");
    await page.keyboard.press("Control+Shift+z");
    expect(await composer(page).inputValue()).toBe(filled);
    await page.keyboard.type(" Thanks!");
    await page.keyboard.press("Enter");
    await expect.poll(() => messages(page).first().innerText()).toContain("Bad tides. {{#if}} Thanks!");

    await messages(page).first().hover();
    await messages(page).first().getByRole("button", { name: "More actions" }).press("Enter");
    await page.getByRole("menuitem", { name: "Save as prompt" }).press("Enter");
    await expectFocus(dialog(page).getByLabel("Name"));
    expect(await dialog(page).getByLabel("Text").inputValue()).toBe(`${filled} Thanks!`);
    await page.keyboard.type("SUM");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).getByText("You already have a prompt with this name.").waitFor();
    await dialog(page).getByLabel("Name").fill("tides");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await section(other.page).getByText("/tides").waitFor();
    await other.close();
    await visit.close();
  });

  test("what names none stays as it is typed, and without any the list says where to add one", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/", account);
    const { page } = visit;
    await composer(page).click();
    await page.keyboard.type("/");
    await page.getByText("You have no prompts yet.").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByText("You have no prompts yet.").count()).toBe(0);
    await page.keyboard.type("usr/bin is a folder");
    await page.keyboard.press("Enter");
    await expect.poll(() => messages(page).first().innerText()).toContain("/usr/bin is a folder");
    await visit.close();
  });

  test("a project has prompts of its own, which come first in its messages, also on a phone", async () => {
    const account = await Account.register();
    const made = await account.request("POST", "/projects", { name: "Kitchen" });
    const { project_id } = (await made.json()) as { project_id: string };
    await account.request("POST", "/prompts", { name: "scale", text: "Scale my recipe." });
    const visit = await BrowserWindow.open(`/p/${project_id}`, account, { viewport: phone, hasTouch: true });
    const { page } = visit;
    await write(page, "scale", "Scale this for four guests.");
    await expectAccessible(page, "a project with prompts");
    await composer(page).fill("/sc");
    await expect
      .poll(() => options(page).allInnerTexts())
      .toEqual(["/scale\nScale this for four guests.\nIn this project", "/scale\nScale my recipe."]);
    // The field is at the top of the page, so the list is below it.
    const field = (await composer(page).boundingBox())!;
    expect((await options(page).first().boundingBox())!.y).toBeGreaterThan(field.y + field.height);
    await options(page).first().tap();
    await expect.poll(() => composer(page).inputValue()).toBe("Scale this for four guests.");
    await composer(page).press("Enter");
    await page.getByRole("button", { name: "Send" }).click();
    await page.waitForURL("**/c/*");
    await composer(page).fill("Thanks!\n/sc");
    await expect.poll(() => options(page).count()).toBe(2);
    await options(page).nth(1).tap();
    await expect.poll(() => composer(page).inputValue()).toBe("Thanks!\nScale my recipe.");
    await visit.close();
  });

  test("a touch next to the dialog does not discard what is written in it", async () => {
    const visit = await BrowserWindow.open("/settings#prompts", await Account.register(), {
      viewport: phone,
      hasTouch: true,
    });
    const { page } = visit;
    await section(page).getByRole("button", { name: "New prompt" }).tap();
    await expectFocus(dialog(page).getByLabel("Name"));
    await page.touchscreen.tap(phone.width / 2, 8);
    await expect.poll(() => dialog(page).count()).toBe(0);
    await section(page).getByRole("button", { name: "New prompt" }).tap();
    await dialog(page).getByLabel("Text").fill("Sum up in three sentences.");
    await page.touchscreen.tap(phone.width / 2, 8);
    await dialog(page).getByLabel("Name").fill("sum");
    await dialog(page).getByRole("button", { name: "Save" }).tap();
    await section(page).getByText("Sum up in three sentences.").waitFor();
    await visit.close();
  });

  test("a change of another device is not replaced unseen, and a deletion is confirmed", async () => {
    const account = await Account.register();
    await account.request("POST", "/prompts", { name: "greet", text: "Hello" });
    const visit = await BrowserWindow.open("/settings#prompts", account);
    const { page } = visit;
    await section(page).getByRole("button", { name: "Edit prompt: greet" }).click();
    await dialog(page).getByLabel("Text").fill("Mine");
    const { data } = await account.read<{ data: { prompt_id: string }[] }>("/prompts");
    const path = `/prompts/${data[0]!.prompt_id}`;
    await account.request("PATCH", path, { text: "Theirs", version: 1 });
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).getByText("Another device changed this prompt.").waitFor();
    await dialog(page).getByRole("button", { name: "Use the other version" }).click();
    expect(await dialog(page).getByLabel("Text").inputValue()).toBe("Theirs");
    await dialog(page).getByLabel("Text").fill("Both");
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await expect.poll(() => account.read(path)).toMatchObject({ text: "Both", version: 3 });
    await section(page).getByRole("button", { name: "Delete prompt: greet" }).click();
    await dialog(page).getByRole("button", { name: "Delete" }).click();
    await section(page).getByText("No prompts yet.").waitFor();
    await expectFocus(section(page).getByRole("list"));
    expect(await account.read("/prompts")).toMatchObject({ data: [] });
    await visit.close();
  });
});
