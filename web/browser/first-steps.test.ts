// Tests of the page of a new chat: its first steps show what is special.
import { expect, test } from "vitest";
import { textFile } from "./chosen-file";
import { composer, expectFocus, messages } from "./conversation-page";
import { Account, BrowserWindow, withBrowser } from "./harness";

withBrowser();

test("the first steps attach a PDF, ask for a long answer, and create a project", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  const step = (name: RegExp) => page.getByRole("main").getByRole("button", { name });
  const chooser = page.waitForEvent("filechooser");
  await step(/^Attach a PDF/).press("Enter");
  await (await chooser).setFiles([textFile("tides.txt")]);
  await page.getByText("tides.txt").first().waitFor();
  await expectFocus(composer(page));
  await visit.close();

  const second = await BrowserWindow.open("/", await Account.register());
  await second.page.getByRole("button", { name: /^Create a project/ }).press("Enter");
  await second.page.getByRole("dialog", { name: "New project" }).getByLabel("Name").fill("Tides");
  await second.page.keyboard.press("Enter");
  await second.page.waitForURL("**/p/*");
  await second.page.goto(new URL("/", second.page.url()).href);
  await second.page.getByRole("button", { name: /^Close this tab/ }).press("Enter");
  await second.page.waitForURL("**/c/*");
  await expect.poll(() => messages(second.page).count()).toBe(2);
  await second.close();
});

test("a PDF is attached to the conversation that the page shows, also after its draft was stored", async () => {
  const account = await Account.register();
  const visit = await BrowserWindow.open("/", account);
  const { page } = visit;
  await composer(page).fill("What is in it?");
  await page.waitForURL("**/c/*");
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: /^Attach a PDF/ }).press("Enter");
  await (await chooser).setFiles([textFile("tides.txt")]);
  await expect
    .poll(() => account.read(`/conversations/${page.url().split("/").at(-1)!}`))
    .toMatchObject({ draft: { content: "What is in it?", attachments: [expect.anything()] } });
  await visit.close();
});
