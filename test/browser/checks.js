/*
 * What a person would complain about in the page that is open: a list of texts, empty if it is fine. The value of
 * this file is a function, see test/browser/run.
 */
(() => {
    const complaints = [];
    const shown = new Set(['HTML', 'BODY', 'HEADER', 'SECTION', 'H1', 'H2', 'P', 'DIV', 'B', 'FIGURE',
        'FIGCAPTION', 'UL', 'LI', 'SPAN', 'TABLE', 'THEAD', 'TBODY', 'TR', 'TH', 'TD', 'SMALL',
        'svg', 'g', 'path', 'polyline']);
    const silent = new Set(['HEAD', 'META', 'STYLE', 'TITLE', 'title']);
    const name = e => e.tagName + (e.getAttribute('class') ? '.' + e.getAttribute('class') : '') +
        ' "' + (e.textContent || '').slice(0, 30) + '"';
    const complain = (what, e) => complaints.push(what + ': ' + name(e));

    /* ---- nothing in it but text, tables and drawings */

    for (const e of document.querySelectorAll('*')) {
        if (!shown.has(e.tagName) && !silent.has(e.tagName))
            complain('an element that the page should not have', e);
        for (const a of e.attributes)
            if (/^on|^(src|href|srcset|data|action|formaction|background)$/.test(a.name) || /url\(/i.test(a.value))
                complain('attribute ' + a.name, e);
    }
    if (window.dqMarker !== undefined)
        complaints.push('data has run as a script');

    /* ---- it fits */

    const wide = document.scrollingElement.scrollWidth;
    if (wide > innerWidth)
        complaints.push('the page is ' + wide + ' wide in a window of ' + innerWidth);
    const body = [...document.body.querySelectorAll('*')].filter(
        e => shown.has(e.tagName) && e.getClientRects().length);
    const scrolls = e => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    for (const e of body) {
        const r = e.getBoundingClientRect();
        if ((r.right > innerWidth + 0.5 || r.left < -0.5) && r.width > 0 && !scrolls(e.parentElement))
            complain('beyond the window', e);
        if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline' && !e.ownerSVGElement)
            complain('wider than its box', e);
        if (e.ownerSVGElement) {
            const plot = e.ownerSVGElement.getBoundingClientRect();
            if (r.top < plot.top - 2 || r.bottom > plot.bottom + 2 ||
                r.left < plot.left - 2 || r.right > plot.right + 2)
                complain('drawn outside of its plot', e);
        }
    }

    /* ---- texts do not cover each other */

    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const e = walker.currentNode.parentElement, range = document.createRange();
        if (!walker.currentNode.data.trim() || e.tagName === 'title' || getComputedStyle(e).visibility !== 'visible')
            continue;
        range.selectNodeContents(walker.currentNode);
        for (const r of range.getClientRects())
            if (r.width > 0)
                texts.push({e, r});
    }
    if (texts.length < 20)
        complaints.push('there are only ' + texts.length + ' pieces of text');
    texts.sort((a, b) => a.r.top - b.r.top);
    for (let i = 0; i < texts.length; i++)
        for (let k = i + 1; k < texts.length && texts[k].r.top < texts[i].r.bottom - 2; k++) {
            const a = texts[i].r, b = texts[k].r;
            if (texts[i].e !== texts[k].e && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1)
                complain('covers ' + name(texts[i].e), texts[k].e);
        }

    /* ---- contrast: 4.5 for text, 3 for what is drawn (WCAG 2.1, AA) */

    const parts = colour => colour.match(/[\d.]+/g).map(Number);
    const light = colour => {
        const [r, g, b] = parts(colour).map(v => v / 255).map(
            v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = e => {
        for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor, p = parts(colour);
            if (p.length === 3 || p[3] === 1)
                return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    const contrast = (a, b) => {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        return (x + 0.05) / (y + 0.05);
    };
    const worst = {text: 99, drawing: 99};
    const judge = (kind, least, e, colour) => {
        const c = contrast(colour, behind(e));
        worst[kind] = Math.min(worst[kind], c);
        if (c < least)
            complain('contrast ' + c.toFixed(2) + ' of ' + colour, e);
    };
    for (const {e} of texts)
        judge('text', 4.5, e, getComputedStyle(e).color);
    for (const e of body) {
        const style = getComputedStyle(e), before = getComputedStyle(e, '::before');
        if (e.tagName === 'polyline')
            judge('drawing', 3, e, style.stroke);
        else if (e.tagName === 'path' && !e.classList.contains('grid'))
            judge('drawing', 3, e, style.fill);
        else if (before.content !== 'none' && before.content !== '""')
            judge('text', 4.5, e, before.color);
        else if (before.content === '""')
            judge('drawing', 3, e, before.backgroundColor);
    }
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    if (dark !== light(behind(document.body)) < 0.2)
        complaints.push('the page is ' + (dark ? 'light' : 'dark') + ' for a person who wants the opposite');
    return {complaints, worst};
})()
