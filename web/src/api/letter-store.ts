// Keeps letters in IndexedDB, where a reload or a crash of the browser does not reach them. Where there is none (some
// private windows) they live as long as the page; the draft on the server is not cleared before a letter was accepted.
import type { LetterStore } from "./delivery";
import type { Letter } from "./letter";

const name = "turnstone";
const letters = "letters";

export function browserStore(): LetterStore {
  const memory = new Map<string, Letter>();
  let opened: Promise<IDBDatabase> | null = null;

  const open = () =>
    (opened ??= new Promise<IDBDatabase>((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(letters, { keyPath: "key" });
      request.onsuccess = () => {
        // Another version of the app wants to change the store: give way, and open again when needed.
        request.result.onversionchange = () => {
          request.result.close();
          opened = null;
        };
        request.result.onclose = () => void (opened = null);
        resolve(request.result);
      };
      request.onerror = () => reject(request.error ?? new Error("no IndexedDB"));
    }).catch((error: unknown) => {
      opened = null;
      throw error;
    }));

  /** Runs one transaction; resolves with the result of its last request once all of it is on disk. */
  async function run<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore, result: (value: T) => void) => void): Promise<T> {
    const database = await open();
    return new Promise<T>((resolve, reject) => {
      const transaction = database.transaction(letters, mode, { durability: "strict" });
      let value: T;
      transaction.oncomplete = () => resolve(value);
      transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("not stored"));
      work(transaction.objectStore(letters), (result) => (value = result));
    });
  }

  const read = <T>(ask: (store: IDBObjectStore) => IDBRequest<T>, otherwise: T): Promise<T> =>
    run<T>("readonly", (store, result) => {
      const request = ask(store);
      request.onsuccess = () => result(request.result);
    }).catch(() => otherwise);

  return {
    async all() {
      const kept = await read<Letter[]>((store) => store.getAll() as IDBRequest<Letter[]>, []);
      return [...kept, ...memory.values()];
    },
    async get(key) {
      return memory.get(key) ?? (await read<Letter | undefined>((store) => store.get(key) as IDBRequest<Letter | undefined>, undefined));
    },
    put: (letter) => run<void>("readwrite", (store) => void store.put(letter)).catch(() => void memory.set(letter.key, letter)),
    async replace(letter) {
      if (memory.has(letter.key)) {
        memory.set(letter.key, letter);
        return true;
      }
      return run<boolean>("readwrite", (store, result) => {
        const known = store.getKey(letter.key);
        known.onsuccess = () => {
          result(known.result !== undefined);
          if (known.result !== undefined) store.put(letter);
        };
        // A disk that is full keeps the letter as it was, which is still there to be sent.
      }).catch(() => true);
    },
    async remove(key) {
      memory.delete(key);
      await run<void>("readwrite", (store) => void store.delete(key)).catch(() => {});
    },
  };
}
