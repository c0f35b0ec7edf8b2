import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { faultTests, mailTests, settings } from "./vitest.faults.config";

/** The files that take much longer than others of their size. */
const slowest = ["pages.test.ts", "hostile.test.ts"];

/** Runs the longest files first: those named above, then by their last duration or, without one, by size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification) => slowest.some((name) => moduleId.endsWith(`/${name}`));
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

// All tests in a real Chromium except those that kill or freeze the service or need one that sends mails. They use accounts of their own and do not
// affect each other, so their files run in parallel.
export default defineConfig({
  test: {
    ...settings,
    include: ["browser/**/*.test.ts"],
    exclude: [...faultTests, ...mailTests],
    fileParallelism: true,
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
  },
});
