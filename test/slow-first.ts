import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that are small but slow. Vitest starts the largest files first, and would start these last. */
const SLOW = ['day/day.test.ts', 'compliance/conformance/conformance.test.ts'];

/** Starts slow files first, so that no worker is left with one when the others have ended. */
export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    // The files of a project stay together: a worker that changes projects imports everything again.
    const projects = new Set(sorted.map(({ project }) => project));
    return [...projects].flatMap((project) => {
      const own = sorted.filter((file) => file.project === project);
      return [...own.filter(isSlow), ...own.filter((file) => !isSlow(file))];
    });
  }
}

function isSlow({ moduleId }: TestSpecification): boolean {
  return SLOW.some((file) => moduleId.endsWith(`/test/${file}`));
}
