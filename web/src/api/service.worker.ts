// The service worker. It shows the app when the service cannot be reached: it stores the document of the app and its assets, and
// nothing of an account. Other requests do not pass through it.
import bird from "../style/bird.svg";

interface WorkerEvent {
  waitUntil(work: Promise<unknown>): void;
}

interface WorkerFetch extends WorkerEvent {
  readonly request: Request;
  readonly preloadResponse: Promise<Response | undefined>;
  respondWith(response: Promise<Response>): void;
}

interface NotificationClick extends WorkerEvent {
  readonly notification: Notification;
}

interface WindowClient {
  focus(): Promise<WindowClient>;
  postMessage(message: unknown): void;
}

interface Worker {
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window" }): Promise<WindowClient[]>;
    openWindow(address: string): Promise<unknown>;
  };
  readonly registration: { navigationPreload?: { enable(): Promise<void> } };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: WorkerEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: WorkerFetch) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationClick) => void): void;
}

const worker = self as unknown as Worker;
const cacheName = "turnstone";
/** The address under which the document of the app is stored. All pages of the app have the same document. */
const shell = "/";
const pages = /^\/(?:[cp]\/[^/]*|library|settings)?$/;

worker.addEventListener("install", (event) => {
  event.waitUntil(Promise.all([fetch(shell).then(storeShell), worker.skipWaiting()]));
});

worker.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([worker.registration.navigationPreload?.enable(), worker.clients.claim()]));
});

worker.addEventListener("fetch", (event) => {
  const { method, mode, url } = event.request;
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== location.origin) return;
  if (mode === "navigate" && pages.test(pathname)) event.respondWith(pageOf(event));
  else if (pathname.startsWith("/assets/")) event.respondWith(assetOf(event));
});

/** A notification that a page has shown with the help of the worker: opens its conversation. */
worker.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification));
});

async function open({ data: path }: Notification): Promise<void> {
  const [page] = await worker.clients.matchAll({ type: "window" });
  if (page === undefined) return void (await worker.clients.openWindow(path as string));
  page.postMessage({ open: path });
  await page.focus();
}

/** Returns what is stored; undefined: nothing, or the storage cannot be read. */
const storedFor = (request: Request | string): Promise<Response | undefined> =>
  caches.match(request, { ignoreVary: true }).catch(() => undefined);

/** Responds with the page of the service. While the service does not respond, it is the stored document, which says so. */
async function pageOf(event: WorkerFetch): Promise<Response> {
  let response;
  try {
    response = (await event.preloadResponse) ?? (await fetch(event.request));
  } catch (error) {
    const kept = await storedFor(shell);
    if (kept === undefined) throw error;
    return kept;
  }
  if (response.status >= 500) return (await storedFor(shell)) ?? response;
  event.waitUntil(storeShell(response.clone()));
  return response;
}

/** Stores the document of the app with the assets that it names and the picture of its pages, and discards other assets. */
async function storeShell(response: Response): Promise<void> {
  const document = await response.clone().text();
  const named = assetsOf(document);
  // Another server on the way may respond in place of the service, for example with a page to sign in.
  if (!response.ok || response.redirected || named.length === 0) return;
  const cache = await caches.open(cacheName);
  const before = await (await cache.match(shell, { ignoreVary: true }))?.text();
  if (before !== undefined && assetsOf(before).join() === named.join()) return cache.put(shell, response);
  const known = (await cache.keys()).map((one) => new URL(one.url).pathname);
  const missing = (name: string) => !known.includes(name);
  await cache.addAll(named.filter(missing));
  await cache.put(shell, response);
  const kept = [shell, bird, ...named];
  await Promise.all(
    known.filter((name) => !kept.includes(name)).map((name) => cache.delete(name, { ignoreVary: true })),
  );
  if (missing(bird)) await cache.add(bird);
}

const assetsOf = (document: string): string[] => [
  ...new Set([...document.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, name]) => name!)),
];

/** Responds with a stored asset, or gets and stores it. Assets never change. */
async function assetOf({ request }: WorkerFetch): Promise<Response> {
  const stored = await storedFor(request);
  if (stored !== undefined) return stored;
  const response = await fetch(request);
  if (response.ok && !response.redirected) {
    const copy = response.clone();
    // The storage may be full or not available; then the asset is loaded again.
    void caches
      .open(cacheName)
      .then(
        (cache) => cache.put(request, copy),
        () => {},
      )
      .catch(() => {});
  }
  return response;
}
