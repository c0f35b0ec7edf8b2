// Tests of the files of messages: adding them in the composer, sending them, and the citations of the answer.
import type { Locator, Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { expectAccessibleInBothColorSchemes } from "./axe";
import { pictureFile, textFile, type ChosenFile } from "./chosen-file";
import {
  composer,
  endless,
  expectFocus,
  fast,
  messages,
  send,
  stop,
  stored,
  waitForAnswerEnd,
  waiting,
} from "./conversation-page";
import { FaultProxy } from "./fault-proxy";
import { Account, BrowserWindow, phone, withBrowser } from "./harness";
import { openInApp } from "./in-app";

withBrowser();

const attached = (page: Page) => page.getByRole("list", { name: "Files in the message" }).getByRole("listitem");
const uploads = (page: Page) => page.getByRole("list", { name: "Uploads" }).getByRole("listitem");
const sendButton = (page: Page) => page.getByRole("button", { name: "Send", exact: true });
const filesOf = (page: Page, at: number) => messages(page).nth(at).getByRole("list", { name: "Files" });

/** Chooses files as a user does, with the menu. */
async function add(page: Page, ...chosen: ChosenFile[]): Promise<void> {
  await page.getByRole("button", { name: "Add files" }).click();
  const item = page.getByRole("menuitem", { name: "Upload files" });
  const [chooser] = await Promise.all([page.waitForEvent("filechooser"), item.click()]);
  await chooser.setFiles(chosen);
}

/** A PDF with a line of text on each page. */
function pdf(name: string, lines: readonly string[]): ChosenFile {
  const objects = lines.map((line, at) => {
    const content = `BT /F 12 Tf 72 720 Td (${line}) Tj ET`;
    return (
      `${4 + 2 * at} 0 obj << /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F 3 0 R >> >> /Contents ${5 + 2 * at} 0 R >> endobj\n` +
      `${5 + 2 * at} 0 obj << /Length ${content.length} >> stream\n${content}\nendstream endobj\n`
    );
  });
  const kids = lines.map((_, at) => `${4 + 2 * at} 0 R`).join(" ");
  const file =
    "%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n" +
    `2 0 obj << /Type /Pages /Count ${lines.length} /Kids [${kids}] >> endobj\n` +
    "3 0 obj << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> endobj\n" +
    `${objects.join("")}trailer << /Size ${4 + 2 * lines.length} /Root 1 0 R >>\n%%EOF\n`;
  return { name, mimeType: "application/pdf", buffer: Buffer.from(file) };
}

interface Draft {
  content: string;
  attachments: string[];
}

async function newConversation(account: Account): Promise<string> {
  const made = await account.request("POST", "/conversations", { title: "With files" });
  return ((await made.json()) as { conversation_id: string }).conversation_id;
}

describe("files of messages", () => {
  test("3 and 5 files are added with the menu, with @, dropped and pasted, and queued and edited messages keep them", async () => {
    const account = await Account.register();
    for (const name of ["tides.txt", "tides of 2025.txt", "moon.txt"]) await account.storeFile(name);
    const visit = await BrowserWindow.open("/library", account);
    const { page } = visit;
    await mentionFiles(page, account);
    await mentionUnknownFile(page, account);
    await openInApp(page, "/");
    await addDroppedAndPasted(page);
    await takeTwentyFiles(page, account);
    await announceUploads(page, account);
    await editMessageWithFile(page, account);
    await editQueuedMessageWithFile(page, account);
    await visit.close();
  });

  test("28, 30 and 32 a PDF is found and cited with its page, and a picture is shown small in lists and whole when opened", async () => {
    const account = await Account.register();
    const visit = await BrowserWindow.open("/library", account);
    const { page } = visit;
    await findByText(page, account);
    await openInApp(page, "/");
    await citePage(page);
    await openInApp(page, "/");
    await showPicture(page);
    await visit.close();
  });

  test("1 and 3 the files of a draft are shown on other devices, and survive a reload and lost requests", async () => {
    const account = await Account.register();
    const first = await BrowserWindow.open("/", account);
    const second = await BrowserWindow.open("/library", account);
    await shareDraft(first.page, second.page, account);
    await second.close();
    const { page } = first;
    page.on("dialog", (dialog) => void dialog.accept()); // the browser asks because files are being sent
    await keepUnstoredDraft(page, account);
    await continueAfterReload(page, account);
    await continueOnAnotherPage(page, account);
    await first.close();
  });

  test("3 and 5 on a phone, files are added from the library, with a tap and while others are uploaded", async () => {
    const account = await Account.register();
    for (const name of ["tides.txt", "moon.txt", "潮汐.txt"]) await account.storeFile(name, "The tide comes in.\n");
    const network = await FaultProxy.start();
    const options = { proxy: network.proxy, viewport: phone, hasTouch: true, isMobile: true };
    const visit = await BrowserWindow.open("/", account, options);
    const { page } = visit;
    await addFromLibrary(page);
    await openInApp(page, "/");
    await mentionByTap(page);
    await waitForUploads(page, account, network);
    await visit.close();
    await network.close();
  });
});

/** A file is found, chosen and sent with the keyboard alone. */
async function mentionFiles(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  const list = page.getByRole("listbox", { name: "Files" });
  const options = list.getByRole("option");
  const active = () => list.getByRole("option", { selected: true }).innerText();
  await composer(page).focus();
  await page.keyboard.type("Read @");
  await expect.poll(() => options.count()).toBe(3);
  await expectAccessibleInBothColorSchemes(page, "the list of files in the composer");
  await page.keyboard.type("TID");
  await expect.poll(() => options.count()).toBe(2);
  await page.getByRole("status").filter({ hasText: "2 files." }).waitFor({ state: "attached" });
  expect(await active()).toBe("tides of 2025.txt");
  await page.keyboard.press("ArrowDown");
  await expect.poll(active).toBe("tides.txt");
  const described = await composer(page).evaluate((field) =>
    document.getElementById(field.getAttribute("aria-activedescendant") ?? "")?.textContent?.trim(),
  );
  expect(described).toBe("tides.txt");
  await page.keyboard.press("Enter");
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  expect(await list.count()).toBe(0);
  expect(await composer(page).inputValue()).toBe("Read ");
  await expectFocus(composer(page));
  // Escape closes the list and leaves the text; an address opens none.
  await page.keyboard.type("it, @moon");
  await expect.poll(() => options.count()).toBe(1);
  await page.keyboard.press("Escape");
  await expect.poll(() => list.count()).toBe(0);
  await page.keyboard.type(".t robin@moon");
  expect(await list.count()).toBe(0);
  expect(await composer(page).inputValue()).toBe("Read it, @moon.t robin@moon");
  // Tab chooses too; a word in the middle of the text is removed from there.
  await composer(page).fill("Compare with .");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.type("@moo");
  await expect.poll(() => options.count()).toBe(1);
  await page.keyboard.press("Tab");
  await attached(page).filter({ hasText: "moon.txt" }).waitFor();
  expect(await composer(page).inputValue()).toBe("Compare with .");
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await stored(account, conversation))[0]?.attachments.length).toBe(2);
}

/** Enter does not choose a file that no longer matches, and a name without a file is sent as a text. */
async function mentionUnknownFile(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  const options = page.getByRole("listbox", { name: "Files" }).getByRole("option");
  await composer(page).focus();
  await page.keyboard.type("@");
  await expect.poll(() => options.count()).toBe(3);
  let answer = (): void => {};
  const asked = new Promise<void>((resolve) => (answer = resolve));
  await page.route(/picker\?.*q=/, async (route) => {
    await asked;
    await route.continue();
  });
  await page.keyboard.type("robin");
  expect(await options.count()).toBe(0);
  await page.keyboard.press("Enter");
  expect(await composer(page).inputValue()).toBe("@robin");
  answer();
  await page.getByText("No file in your library has this name.").waitFor();
  await page.keyboard.press("Enter");
  await expect.poll(async () => (await stored(account, conversation))[0]).toMatchObject({ attachments: [] });
  await page.unrouteAll();
}

async function addDroppedAndPasted(page: Page): Promise<void> {
  await composer(page).waitFor();
  const hand = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["The tide comes in."], "dropped.txt", { type: "text/plain" }));
    return data;
  });
  await expect
    .poll(async () => {
      await page.dispatchEvent("body", "dragover", { dataTransfer: hand });
      return page.getByText("Drop files to add them to the message").count();
    })
    .toBe(1);
  await page.dispatchEvent("body", "drop", { dataTransfer: hand });
  await attached(page).filter({ hasText: "dropped.txt" }).waitFor();
  await composer(page).evaluate((field) => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(["The moon pulls."], "pasted.txt", { type: "text/plain" }));
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  });
  await attached(page).filter({ hasText: "pasted.txt" }).waitFor();
  const long = "The tide rises. ".repeat(300).trim();
  await pasteText(page, long);
  await attached(page).filter({ hasText: "pasted-text.txt" }).waitFor();
  await page.getByRole("button", { name: "Turn back into text: pasted-text.txt" }).click();
  await attached(page).filter({ hasText: "pasted-text.txt" }).waitFor({ state: "hidden" });
  await expect.poll(() => composer(page).inputValue()).toContain(long);
}

const pasteText = (page: Page, pasted: string) =>
  composer(page).evaluate((field, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, pasted);

/** A message takes the first twenty of the chosen files, in their order. After that, a long pasted text stays a text. */
async function takeTwentyFiles(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  const chosen = Array.from({ length: 23 }, (_, at) => `file-${at + 1}.txt`);
  const files = chosen.map((name) => textFile(name));
  await page.getByRole("form").locator('input[type="file"]').setInputFiles(files);
  await page.getByText("A message can have at most 20 files. 3 files were left out.").waitFor();
  await expect.poll(() => attached(page).locator("bdi").allInnerTexts()).toEqual(chosen.slice(0, 20));
  await page.getByText("20 files uploaded.", { exact: true }).waitFor({ state: "attached" });
  const long = "The tide falls. ".repeat(300).trim();
  await pasteText(page, long);
  await expect.poll(() => composer(page).inputValue()).toBe(long);
  await composer(page).fill("");
}

/** The result of each upload is announced, also if it is the same as before. */
async function announceUploads(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  await add(page, textFile("one.txt"));
  const announced = page.getByText("1 file uploaded.", { exact: true });
  await announced.waitFor({ state: "attached" });
  const first = (await announced.elementHandle())!;
  await add(page, textFile("two.txt"));
  await attached(page).filter({ hasText: "two.txt" }).waitFor();
  // Screen readers announce a new element, not a text that stays the same.
  await expect.poll(() => first.evaluate((element) => element.isConnected)).toBe(false);
  await announced.waitFor({ state: "attached" });
  await add(page, textFile("nothing.txt", ""));
  await page.getByText("nothing.txt wasn't uploaded.", { exact: true }).waitFor({ state: "attached" });
}

/** An edited message keeps its files, and a message can consist of a file. */
async function editMessageWithFile(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  await composer(page).waitFor();
  await add(page, textFile("tides.txt", "The tide comes in."));
  await attached(page).first().waitFor();
  await sendButton(page).click();
  await waitForAnswerEnd(page);
  await messages(page).first().hover();
  await messages(page).first().getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit your message" }).fill(`Which tide? ${fast(3)}`);
  await page.keyboard.press("Enter");
  await expect
    .poll(async () =>
      (await stored(account, conversation)).map(({ attachments, parts }) => [attachments.length, parts.length > 0]),
    )
    .toEqual([
      [1, true],
      [0, true],
    ]);
  await filesOf(page, 0).getByRole("button", { name: "tides.txt" }).waitFor();
  await account.request("DELETE", `/files/${(await stored(account, conversation))[0]!.attachments[0]!}`);
  await page.reload();
  await filesOf(page, 0).getByRole("button", { name: "tides.txt" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "tides.txt" });
  await dialog.getByText("The tide comes in.").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}

/** A queued message with files returns to the composer with them. */
async function editQueuedMessageWithFile(page: Page, account: Account): Promise<void> {
  const { conversation } = await account.startTurn(endless);
  await openInApp(page, `/c/${conversation}`);
  await stop(page).waitFor();
  await add(page, textFile("tides.txt", "The tide comes in."));
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await page.getByRole("button", { name: "Queue", exact: true }).click();
  const row = waiting(page).getByRole("listitem").filter({ hasText: "(1 file)" });
  await row.waitFor();
  await expect.poll(() => attached(page).count()).toBe(0);
  await expect.poll(() => row.getByRole("button", { name: "Edit" }).isEnabled()).toBe(true);
  await row.getByRole("button", { name: "Edit" }).click();
  const editor = waiting(page).getByRole("textbox", { name: "Edit the queued message" });
  await editor.fill("Explain it.");
  await editor.press("Enter");
  await row.filter({ hasText: "Explain it." }).waitFor();
  await stop(page).click();
}

/** The palette finds a file by its text and opens the page. */
async function findByText(page: Page, account: Account): Promise<void> {
  const [chooser] = await Promise.all([
    page.waitForEvent("filechooser"),
    page.getByRole("button", { name: "Upload files" }).click(),
  ]);
  await chooser.setFiles(pdf("pilot.pdf", ["The pilot comes aboard.", "Marmalade is served at noon."]));
  const stateOfText = async () => {
    const files = await account.read<{ data: { text_state: string }[] }>("/files");
    return files.data[0]?.text_state;
  };
  await expect.poll(stateOfText).toBe("done");
  await page.keyboard.press("ControlOrMeta+k");
  await page.getByRole("dialog").getByRole("combobox").fill("marmalade");
  const found = page.getByRole("group", { name: "Files" }).getByRole("option");
  await expect.poll(() => found.textContent()).toContain("Marmalade is served at noon.");
  await expect.poll(() => found.getAttribute("aria-selected")).toBe("true");
  await expectAccessibleInBothColorSchemes(page, "a found file");
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "pilot.pdf" });
  await expect.poll(() => dialog.locator("mark").textContent()).toContain("Marmalade is served at noon.");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
}

/** An answer about a PDF cites its page, and the citation opens the page. */
async function citePage(page: Page): Promise<void> {
  await add(
    page,
    pdf("pilot.pdf", ["Ships come.", "The spring tide of Saint-Malo rises by twelve metres.", "Ships go."]),
  );
  await attached(page).filter({ hasText: "pilot.pdf" }).waitFor();
  await expectAccessibleInBothColorSchemes(page, "a message with a file that is being written");
  await send(page, "How high is the spring tide?");
  await waitForAnswerEnd(page);
  await expect.poll(() => attached(page).count()).toBe(0);
  await filesOf(page, 0).getByRole("button", { name: "pilot.pdf" }).waitFor();
  const citation = page.getByRole("button", { name: "pilot.pdf, page 2" });
  await citation.waitFor();
  await expectAccessibleInBothColorSchemes(page, "an answer with a citation");
  await citation.press("Enter");
  const dialog = page.getByRole("dialog", { name: "pilot.pdf" });
  await dialog.getByText("page 2", { exact: true }).waitFor();
  expect(await dialog.locator("mark").innerText()).toBe("The spring tide of Saint-Malo rises by twelve metres.");
  expect(await dialog.getByText("Ships come.").count()).toBe(0);
  await expectAccessibleInBothColorSchemes(page, "a cited page");
  await dialog.getByRole("button", { name: "Show from the beginning" }).press("Enter");
  await dialog.getByText("Ships come.").waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await expectFocus(citation);
}

async function showPicture(page: Page): Promise<void> {
  const widths = (within: Locator) =>
    within.locator("img").evaluateAll((all) => all.map((one) => (one as HTMLImageElement).naturalWidth));
  const contents: string[] = [];
  page.on("request", (request) => void (request.url().endsWith("/content") && contents.push(request.method())));
  await composer(page).waitFor();
  await add(page, pictureFile("tide.png", 1200, 800), textFile("tides.txt"), pdf("pilot.pdf", ["The first page."]));
  const chip = attached(page).filter({ hasText: "tide.png" });
  await expect.poll(() => widths(chip)).toEqual([512]);
  await expect.poll(() => widths(attached(page).filter({ hasText: "pilot.pdf" }))).toEqual([396]); // the page of 612 × 792 points
  await expectAccessibleInBothColorSchemes(page, "a message with a picture that is being written");
  expect((await chip.boundingBox())!.height).toBe(
    (await attached(page).filter({ hasText: "tides.txt" }).boundingBox())!.height,
  );
  await composer(page).fill("What is"); // stores the new conversation
  await page.getByText("The model sees the image.").waitFor();
  await send(page, "What is this?");
  await waitForAnswerEnd(page);
  await messages(page).nth(1).getByText("A picture of 1200 × 800 pixels (jpeg).").waitFor();
  const sent = filesOf(page, 0).getByRole("button", { name: "tide.png", exact: true });
  await expect.poll(() => widths(sent)).toEqual([512]);
  await openInApp(page, "/library");
  const row = page.getByRole("list", { name: "Files" }).getByRole("listitem").filter({ hasText: "tide.png" });
  await expect.poll(() => widths(row)).toEqual([512]);
  await expectAccessibleInBothColorSchemes(page, "a library with a picture");
  expect(contents).toEqual(["PUT", "PUT", "PUT"]); // the uploads
  await page.goBack();
  await sent.press("Enter");
  const view = page.getByRole("dialog", { name: "tide.png" });
  await expect.poll(() => widths(view)).toEqual([1200]);
  expect(await view.getByRole("listitem").getByRole("link").count(), "conversations that have it").toBe(1);
}

/** The files of a draft are stored on the service. */
async function shareDraft(page: Page, second: Page, account: Account): Promise<void> {
  await composer(page).waitFor();
  await add(page, textFile("tides.txt"));
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await page.waitForURL(/\/c\/conv_/);
  const conversation = new URL(page.url()).pathname.slice(3);
  const draft = async () => (await account.read<{ draft: Draft }>(`/conversations/${conversation}`)).draft;
  await expect.poll(async () => (await draft()).attachments.length).toBe(1);
  await openInApp(second, `/c/${conversation}`);
  await attached(second).filter({ hasText: "tides.txt" }).waitFor();
  await add(second, textFile("moon.txt"));
  await attached(page).filter({ hasText: "moon.txt" }).waitFor();
  await page.reload();
  await expect.poll(() => attached(page).allInnerTexts()).toEqual(["tides.txt", "moon.txt"]);
  // A file that is deleted in the meantime is marked, and the message waits until the user removes it.
  const { data } = await account.read<{ data: { file_id: string; filename: string }[] }>("/files");
  await account.request("DELETE", `/files/${data.find(({ filename }) => filename === "moon.txt")!.file_id}`);
  await page.getByText("A file was deleted from your library.").waitFor();
  await attached(page).filter({ hasText: "moon.txt" }).getByText("deleted").waitFor();
  await expect.poll(() => sendButton(page).isEnabled()).toBe(false);
  await expectAccessibleInBothColorSchemes(page, "a message with a deleted file");
  await page.getByRole("button", { name: "Remove: moon.txt" }).press("Enter");
  await expect.poll(() => attached(second).allInnerTexts()).toEqual(["tides.txt"]);
  await send(page, `Which tide? ${fast(5)}`);
  await waitForAnswerEnd(page);
  await expect.poll(() => attached(second).count()).toBe(0);
  expect(await attached(page).count()).toBe(0);
  await expect.poll(draft).toMatchObject({ content: "", attachments: [] });
  expect((await stored(account, conversation))[0]!.attachments).toHaveLength(1);
}

/** The files of a draft survive a reload while the service does not store drafts. */
async function keepUnstoredDraft(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  await page.route(/\/draft$/, (route) => route.abort());
  await composer(page).fill("Which tide?");
  await add(page, textFile("tides.txt"));
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await page.getByText("Saved on this device").waitFor();
  await page.reload();
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await page.unroute(/\/draft$/);
  await expect
    .poll(async () => (await account.read<{ draft: Draft }>(`/conversations/${conversation}`)).draft)
    .toMatchObject({ content: "Which tide?", attachments: [expect.any(String)] });
}

/** A reload continues an upload whose bytes were sent, and reports one whose bytes were not. */
async function continueAfterReload(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  let received = (): void => {};
  const scanned = new Promise<void>((resolve) => (received = resolve));
  // The first content reaches the service and its response does not arrive; the second content is not sent.
  await page.route(/\/content$/, async (route) => {
    if (!(route.request().postData() ?? "").includes("tides")) return;
    await route.fetch();
    received();
  });
  await composer(page).waitFor();
  await add(page, textFile("tides.txt"));
  await scanned;
  await add(page, textFile("moon.txt", "The moon pulls."));
  await expect.poll(() => uploads(page).count()).toBe(2);
  const sessions = () =>
    page.evaluate(() => Object.entries(sessionStorage).find(([key]) => key.startsWith("turnstone-uploads/"))![1]);
  await expect.poll(sessions).toMatch(/upl_.*upl_/);
  await page.reload();
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  const interrupted = uploads(page).filter({ hasText: "moon.txt" });
  await interrupted.getByText("The page was closed before the whole file was uploaded.").waitFor();
  await expect.poll(() => uploads(page).count()).toBe(1);
  await expectAccessibleInBothColorSchemes(page, "a message with an interrupted upload");
  await page.reload();
  await interrupted.getByText("Choose the file again.").waitFor();
  await interrupted.getByRole("button", { name: "Remove from the list: moon.txt" }).press("Enter");
  await page.reload();
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  expect(await uploads(page).count()).toBe(0);
  expect(await attached(page).count()).toBe(1);
  await page.unrouteAll();
}

/** An upload that is continued on another page is added to the draft of its conversation. */
async function continueOnAnotherPage(page: Page, account: Account): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  let received = (): void => {};
  const sent = new Promise<void>((resolve) => (received = resolve));
  await page.route(/\/content$/, async (route) => {
    await route.fetch();
    received();
  });
  await composer(page).waitFor();
  await add(page, textFile("tides.txt"));
  await sent;
  await page.goto(new URL("/", page.url()).href);
  await expect
    .poll(async () => (await account.read<{ draft: Draft }>(`/conversations/${conversation}`)).draft.attachments.length)
    .toBe(1);
  expect(await attached(page).count()).toBe(0);
}

/** Files of the library are added, after a search. */
async function addFromLibrary(page: Page): Promise<void> {
  await composer(page).waitFor();
  await page.getByRole("button", { name: "Add files" }).press("Enter");
  await page.getByRole("menuitem", { name: "Add from library" }).press("Enter");
  const dialog = page.getByRole("dialog", { name: "Add files from your library" });
  await dialog.getByText("moon.txt").first().waitFor();
  await dialog.getByRole("searchbox").fill("tid");
  await expect.poll(() => dialog.getByRole("listitem").count()).toBe(1);
  await dialog.getByRole("button", { name: "Add tides.txt" }).press("Enter");
  await dialog.getByRole("button", { name: "Added tides.txt" }).waitFor();
  await expectAccessibleInBothColorSchemes(page, "the dialog with files of the library");
  await page.keyboard.press("Escape");
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await sendButton(page).click();
  await waitForAnswerEnd(page);
  await filesOf(page, 0).getByRole("button", { name: "tides.txt" }).waitFor();
}

/** A file of the list is chosen with a tap; keys of an input method are not handled. */
async function mentionByTap(page: Page): Promise<void> {
  const option = page.getByRole("option", { name: "潮汐.txt" });
  await composer(page).tap();
  await composer(page).pressSequentially("資料＠潮");
  await option.waitFor();
  await expect.poll(() => page.getByRole("option").count()).toBe(1);
  const handled = await composer(page).evaluate((field) => {
    const event = new KeyboardEvent("keydown", { key: "Enter", isComposing: true, bubbles: true, cancelable: true });
    const processed = { key: "Enter", bubbles: true, cancelable: true };
    const last = Object.defineProperty(new KeyboardEvent("keydown", processed), "keyCode", { value: 229 });
    return [!field.dispatchEvent(event), !field.dispatchEvent(last)];
  });
  expect(handled).toEqual([false, false]);
  await expectAccessibleInBothColorSchemes(page, "the list of files in the composer of a phone");
  const box = (await option.boundingBox())!;
  expect(box.height).toBeGreaterThanOrEqual(44);
  expect(box.y).toBeGreaterThan(0);
  await option.tap();
  await attached(page).filter({ hasText: "潮汐.txt" }).waitFor();
  expect(await composer(page).inputValue()).toBe("資料");
  await expectFocus(composer(page));
}

/** The message waits for its uploads, and one bad file blocks nothing; the files survive a reload. */
async function waitForUploads(page: Page, account: Account, network: FaultProxy): Promise<void> {
  const conversation = await newConversation(account);
  await openInApp(page, `/c/${conversation}`);
  await composer(page).fill(`Which tide? ${fast(5)}`);
  network.holdBodies();
  await add(page, textFile("tides.txt", "The tide comes in.\n".repeat(50_000)));
  await uploads(page).filter({ hasText: "tides.txt" }).waitFor();
  const waits = page.getByRole("button", { name: "Send: waiting for 1 upload" });
  await expect.poll(() => waits.isEnabled()).toBe(false);
  await page.getByText("You can send the message when the upload is finished.").waitFor();
  await expectAccessibleInBothColorSchemes(page, "a message that waits for an upload");
  network.release();
  await attached(page).filter({ hasText: "tides.txt" }).waitFor();
  await expect.poll(() => sendButton(page).isEnabled()).toBe(true);
  await add(page, textFile("nothing.txt", ""), textFile("moon.txt", "The moon pulls."));
  await uploads(page).getByText("This file is empty.").waitFor();
  await page.getByText("The message will be sent without nothing.txt.").waitFor();
  await attached(page).filter({ hasText: "moon.txt" }).waitFor();
  const description = await sendButton(page).evaluate((button) =>
    button
      .getAttribute("aria-describedby")!
      .split(" ")
      .map((id) => document.getElementById(id)?.textContent ?? ""),
  );
  expect(description.join(" ")).toContain("The message will be sent without nothing.txt.");
  await expectAccessibleInBothColorSchemes(page, "a message with files and a refused upload");
  await page.reload();
  await expect.poll(() => attached(page).count()).toBe(2);
  await page.getByRole("button", { name: "Remove: moon.txt" }).press("Enter");
  await expect.poll(() => attached(page).count()).toBe(1);
  await sendButton(page).click();
  await waitForAnswerEnd(page);
  await expect
    .poll(async () => (await stored(account, conversation)).map(({ attachments }) => attachments.length))
    .toEqual([1, 0]);
}
