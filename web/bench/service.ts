// Runs the program as an operator builds it, on free ports and in a temporary folder.
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, chmodSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Service {
  url: string;
  /** Runs statements in the service's database as its superuser. */
  sql(statements: string): void;
  stop(): Promise<void>;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Starts bin/turnstone dev and waits until it is ready. */
export async function startService(): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), "turnstone-bench-web-"));
  chmodSync(folder, 0o711);
  const [port, internal] = [await freePort(), await freePort()];
  const highLimits = Object.fromEntries(
    ["CHAT", "READS", "WRITES", "SIGNIN"].map((name) => [`TURNSTONE_LIMIT_${name}`, "600000/1m burst 100000"]),
  );
  const child: ChildProcess = spawn(new URL("../../bin/turnstone", import.meta.url).pathname, ["dev"], {
    env: {
      PATH: process.env["PATH"],
      ...highLimits,
      TURNSTONE_DATA_DIR: join(folder, "data"),
      TURNSTONE_LISTEN: `127.0.0.1:${port}`,
      TURNSTONE_INTERNAL_LISTEN: `127.0.0.1:${internal}`,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    let printed = "";
    child.stdout!.on("data", (text: Buffer) => {
      printed += text.toString();
      if (printed.includes("Ctrl-C stops")) resolve();
    });
    void ended.then(() => reject(new Error(`the service ended: ${printed}`)));
  });
  return {
    url: `http://127.0.0.1:${port}`,
    sql(statements) {
      const database = `postgres://postgres@/turnstone?host=${encodeURIComponent(join(folder, "data/postgres/run"))}`;
      execFileSync("psql", ["-Xq", "-v", "ON_ERROR_STOP=1", "-d", database], {
        input: statements,
        stdio: ["pipe", "ignore", "inherit"],
      });
    },
    async stop() {
      child.kill("SIGINT");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
