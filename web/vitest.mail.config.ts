import { defineConfig } from "vitest/config";
import { mailTests, settings } from "./vitest.faults.config";

export default defineConfig({ test: { ...settings, include: mailTests, fileParallelism: false } });
