/// <reference lib="dom" />

/**
 * Replaces a part of this page with the same part of the page in `answer`; undefined if either page
 * lacks it.
 */
export async function replacePart(
  answer: Response,
  selector: string,
): Promise<HTMLElement | undefined> {
  const other = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const [before, after] = [document, other].map((one) =>
    one.querySelector<HTMLElement>(selector),
  ) as [HTMLElement | null, HTMLElement | null];
  if (before === null || after === null) return undefined;
  const part = document.adoptNode(after);
  before.replaceWith(part);
  return part;
}
