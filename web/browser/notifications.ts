// The notifications of a page, recorded: Chromium without a window shows none.
import type { Page } from "playwright-core";

interface Recorder {
  permission: string;
  all: { title: string; options: { body: string }; closed: boolean; onclick: () => void }[];
}

/** Records the notifications of the documents that the page loads from now on. Their permission is given when it is asked for. */
export async function recordNotifications(page: Page) {
  await page.addInitScript(() => {
    class Recorded {
      static permission = "default";
      static requestPermission = () => ((Recorded.permission = "granted"), Promise.resolve("granted"));
      static all: Recorded[] = [];
      onclick: () => void = () => {};
      closed = false;
      constructor(
        readonly title: string,
        readonly options: { body: string },
      ) {
        Recorded.all.push(this);
      }
      close = () => void (this.closed = true);
    }
    Object.assign(window, { Notification: Recorded });
  });
  return {
    /** Each notification: its title, its text, and whether it is closed. */
    shown: () =>
      page.evaluate(() =>
        (window as unknown as { Notification: Recorder }).Notification.all.map(
          ({ title, options: { body }, closed }) => `${title}: ${body} ${closed}`,
        ),
      ),
    click: (n: number) =>
      page.evaluate((at) => (window as unknown as { Notification: Recorder }).Notification.all[at]!.onclick(), n),
  };
}
