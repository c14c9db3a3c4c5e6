import { strict as assert } from 'node:assert';
import type { Page } from 'playwright-core';

/** A user without a mouse, who sees where the focus is. */
export interface KeyboardUser {
  /**
   * Presses Tab, or Shift+Tab to go back, until an element with this name has the visible focus.
   */
  readonly goTo: (name: string | RegExp, back?: 'back') => Promise<void>;
  /** Goes to an element and presses Enter. */
  readonly press: (name: string | RegExp) => Promise<void>;
  /** Goes to an input and replaces its text. */
  readonly fill: (name: string | RegExp, text: string) => Promise<void>;
  readonly type: (text: string) => Promise<void>;
  readonly key: (key: string) => Promise<void>;
  readonly place: () => Promise<Place>;
  /** Waits for a message with this text; returns whether it has the focus. */
  readonly readsMessage: (text: string) => Promise<boolean>;
}

export interface Place {
  /** The label or the text of the element with the focus; empty for the page as a whole. */
  readonly name: string;
  readonly tag: string;
  /** Whether the element is in the window and has a visible outline. */
  readonly isSeen: boolean;
}

/** A test fails if it needs more stops of Tab than this. */
const MAX_STOPS = 60;

export function keyboardUser(page: Page): KeyboardUser {
  const { keyboard } = page;
  const place = (): Promise<Place> =>
    page.evaluate(() => {
      const { activeElement: one } = document;
      if (one === null || one === document.body) return { name: '', tag: '', isSeen: true };
      const labels = [...((one as HTMLInputElement).labels ?? [])];
      const text =
        one.getAttribute('aria-label') ??
        (labels.map((label) => label.textContent).join(' ') || one.textContent);
      const { outlineStyle, outlineWidth } = getComputedStyle(one);
      const { width, height, bottom, top, right, left } = one.getBoundingClientRect();
      const isInside = bottom > 0 && right > 0 && top < innerHeight && left < innerWidth;
      const isOutlined = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
      return {
        name: text.replaceAll(/\s+/g, ' ').trim(),
        tag: one.localName,
        isSeen: isOutlined && isInside && width > 0 && height > 0,
      };
    });
  const isAt = (name: string, wanted: string | RegExp): boolean =>
    typeof wanted === 'string' ? name === wanted : wanted.test(name);
  const goTo: KeyboardUser['goTo'] = async (wanted, back) => {
    const passed: string[] = [];
    for (let stop = 0; stop < MAX_STOPS; stop++) {
      await keyboard.press(back === undefined ? 'Tab' : 'Shift+Tab');
      const { name, tag, isSeen } = await place();
      assert.ok(isSeen, `the focus on ${tag} ${name} of ${page.url()} is not visible`);
      if (isAt(name, wanted)) return;
      passed.push(name.slice(0, 40));
    }
    assert.fail(`Tab does not reach ${String(wanted)} on ${page.url()}: ${passed.join(' | ')}`);
  };
  return {
    place,
    goTo,
    async press(wanted) {
      await goTo(wanted);
      await keyboard.press('Enter');
    },
    async fill(wanted, text) {
      await goTo(wanted);
      await keyboard.press('Control+A');
      await keyboard.insertText(text);
    },
    type: (text) => keyboard.type(text),
    key: (key) => keyboard.press(key),
    async readsMessage(text) {
      const message = page.locator('[data-message]', { hasText: text });
      await message.waitFor();
      return message.evaluate((one) => one === document.activeElement);
    },
  };
}
