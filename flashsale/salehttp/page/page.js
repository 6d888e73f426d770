// Buying in a flash sale, for the page of a shop. doc.go says how to use it; page.min.js, which is served, is made of this file.
// It is closures and no class, since names of properties are not made shorter.
(() => {
  'use strict';

  // Each in English and Chinese. {t} is a time that runs down.
  const words = {
    loading: ['One moment…', '请稍候…'],
    soon: ['Opens in {t}', '距开售 {t}'],
    open: ['On sale now', '正在热卖'],
    asking: ['Sending…', '正在提交…'],
    retrying: ['Very busy. We keep trying; you lose nothing.', '抢购人数较多，正在自动重试，不影响您的资格。'],
    pending: ['Processing. It is not yours yet.', '订单处理中，尚未抢到，请稍候。'],
    reserved: ['Held for you. Pay within {t}.', '已为您保留，请在 {t} 内付款。'],
    confirming: ['Waiting for your payment. Held for {t}.', '等待付款结果，保留 {t}。'],
    confirmed: ['Paid. It is yours.', '已付款，抢购成功。'],
    rejected: ['Not reserved: others were quicker.', '未抢到，已被他人抢先。'],
    cancelled: ['Given back.', '已放弃。'],
    expired: ['Not paid in time; given back.', '付款超时，商品已释放。'],
    unknown: ['Nothing is reserved for you.', '没有为您保留商品。'],
    all_held: ['All are held now. Some may come back.', '暂时全部被占用，可能有人放弃。'],
    gone: ['Sold out.', '已售罄。'],
    paused: ['The sale is paused.', '活动已暂停。'],
    ended: ['The sale is over.', '活动已结束。'],
    missing: ['There is no such sale.', '没有这个活动。'],
    signin: ['Please sign in first.', '请先登录。'],
    failed: ['That did not work. Please try again.', '操作失败，请重试。'],
    buy: ['Buy', '立即抢购'],
    again: ['Try again', '再试一次'],
    pay: ['Pay', '去付款'],
    cancel: ['Give it back', '放弃'],
    day: ['d ', '天 '],
  };

  const states = ['pending', 'reserved', 'confirming', 'confirmed', 'rejected', 'cancelled', 'expired'];
  const resting = /^(load|soon|open|all|gone|pau|end|mis)/; // states in which nothing is under way, if there is no reservation
  const patience = 15e3; // ms, for an answer
  const dom = document;
  const clock = () => performance.now();
  const ms = Date.parse;
  // A wait is never shorter than was asked for, and differs, so that those who were sent away together do not come back together.
  const spread = (seconds) => seconds * 1000 * (1 + Math.random() / 2);
  const pause = (seconds) => new Promise((done) => setTimeout(done, spread(seconds)));

  const mount = (box) => {
    const set = box.dataset;
    const zh = +/^zh/i.test(set.lang || box.closest('[lang]')?.lang || navigator.language);
    const say = (word) => words[word]?.[zh] || '';
    const base = `${set.base || ''}/_headgate/sales/${set.headgateSale}`;
    const item = `/skus/${set.sku}`;
    const key = `headgate ${base}${item}`;
    box.textContent = '';
    const [line, main, back] = ['p', 'button', 'button'].map((name) => box.appendChild(dom.createElement(name)));
    let sale; // as the server has shown it last
    let state, until, text; // what is shown
    let busy; // one request of the shopper's at a time
    let rid, path, stream, last; // the reservation that is followed
    let rtt = Infinity;
    let ahead = performance.timeOrigin; // of the server's clock to that of the page
    let next;
    let memory = {};

    // --- what is kept over a reload: the order token, which is the key of this purchase, whether it was sent, and the reservation

    const kept = () => {
      try {
        return JSON.parse(localStorage.getItem(key)) || {};
      } catch {
        return memory;
      }
    };
    const keep = (value) => {
      memory = value;
      try {
        localStorage.setItem(key, JSON.stringify(value));
      } catch { /* no storage, or it is full */ }
    };

    // --- the server

    const now = () => clock() + ahead;

    // An answer that breaks off, or that somebody between has made, is none; but that of a proxy which signs people in says who is not.
    const ask = async (route, body) => {
      const from = clock();
      let res, doc = {}, code = 0;
      try {
        res = await fetch(base + route, {
          method: body ? 'POST' : 'GET',
          body,
          cache: 'no-store', // the time in an answer must be that of now
          signal: AbortSignal.timeout?.(patience),
          credentials: 'include', // of another origin too, if data-base names one
          headers: { 'Accept-Language': zh ? 'zh' : 'en', ...(body && { 'Content-Type': 'application/json' }) },
        });
        if (res.status === 401) code = 401;
        doc = { ...await res.json() };
        code = res.status;
        const to = clock();
        if (doc.now && to - from < rtt) { // the clock is set by the quickest answer
          rtt = to - from;
          ahead = ms(doc.now) + res.headers.get('Age') * 1000 - (from + to) / 2;
        }
      } catch { /* no answer */ }
      return { code, doc, after: +res?.headers.get('Retry-After') || 0 }; // 0 too if it is a date
    };
    const later = (code) => !code || code === 408 || code > 428; // a body that stalled, too many requests, or a fault
    const backoff = (tries) => Math.min(30, 2 ** tries);

    // --- what people see

    const tell = (name, detail) => box.dispatchEvent(new CustomEvent(name, { bubbles: true, cancelable: true, detail }));

    const time = (s) => {
      const days = s / 86400 | 0;
      return (days ? days + say('day') : '') + [s / 3600 % 24, s / 60 % 60, s % 60].map((n) => `${n | 0}`.padStart(2, 0)).join(':');
    };

    const tick = () => {
      const left = Math.max(0, Math.ceil((until - now()) / 1000));
      const said = text.replace('{t}', time(left));
      if (line.textContent !== said) line.textContent = said;
      if (state === 'soon' && !left) rest();
    };

    const show = (to, does, deadline, other) => {
      const changed = state !== to;
      state = set.state = to;
      until = ms(deadline);
      text = other || say(to);
      main.hidden = !does;
      main.textContent = say(does);
      back.hidden = does !== 'pay';
      back.textContent = say('cancel');
      tick();
      if (changed) tell('headgate', { state, result: last });
    };

    // rest says what can be done while nothing is under way.
    const rest = () => {
      const sku = sale.skus.find((one) => one.sku === set.sku);
      const at = now();
      let to = 'open';
      if (!sku) to = 'missing';
      else if (sku.status === 'paused') to = 'paused';
      else if (sku.status !== 'open' || at >= ms(sale.closes_at)) to = 'ended';
      else if (at < ms(sale.opens_at)) to = 'soon';
      else if (/all_held|gone/.test(sku.stock)) to = sku.stock;
      show(to, { open: 'buy', all_held: 'again' }[to], sale.opens_at);
    };

    const refresh = async () => {
      clearTimeout(next);
      const { code, doc, after } = await ask('');
      if (doc.skus) sale = doc;
      if (code === 404) sale = { skus: [] };
      clearTimeout(next);
      next = setTimeout(refresh, spread(Math.max(after, 5)));
      if (sale && !rid && resting.test(state)) rest();
    };

    // --- buying

    const order = async () => {
      show('asking');
      for (let tries = 0, anew = 0; ; tries++) {
        let { token, sent, expires } = kept();
        let got;
        // A token that was sent may have been spent: only sending it again tells.
        if (!token || (!sent && now() > ms(expires))) {
          got = await ask(`${item}/token`, '{}');
          token = got.doc.token;
          expires = got.doc.expires_at;
        }
        if (token) {
          keep({ token, expires, sent: 1 });
          got = await ask(`${item}/reservations`, JSON.stringify({ token, quantity: +(set.quantity || 1) }));
          const mine = got.doc.rid ? got.doc : got.doc.holds?.[0];
          if (mine) {
            follow(mine.rid, mine);
            return;
          }
          if (/token|conflict/.test(got.doc.code)) { // nothing was reserved with it, or not what is wanted now
            keep({});
            if (!anew++) continue;
          }
        }
        const { code, doc, after } = got;
        if (later(code)) {
          show('retrying');
          await pause(Math.max(after, backoff(tries)));
          continue;
        }
        if (kept().sent) keep({ token, expires }); // it was not spent; but a reload has nothing to ask for
        if (doc.code === 'not_open') {
          show('loading');
          refresh();
        } else if (doc.code === 'sold_out') {
          show(doc.stock, doc.stock !== 'gone' && 'again');
        } else {
          show(code === 401 ? 'signin' : 'failed', 'again', 0, code !== 401 && doc.detail);
        }
        return;
      }
    };

    // alone does one thing at a time.
    const alone = async (what) => {
      if (busy) return;
      busy = main.disabled = back.disabled = true;
      try {
        await what();
      } finally {
        busy = main.disabled = back.disabled = false;
      }
    };

    // --- what becomes of it

    const stop = () => {
      stream?.close();
      stream = rid = null;
    };

    const result = (doc) => {
      if (last?.rid === doc.rid && last.version > doc.version) return;
      last = doc;
      const at = states.indexOf(doc.state);
      const lost = at > 3;
      const held = at === 1 || at === 2;
      if (at > 2) stop(); // it has ended
      if (lost) keep({});
      show(doc.state, held ? 'pay' : lost && 'again', doc.until);
    };

    const poll = async (of) => {
      for (let tries = 0; rid === of; tries++) {
        if (tries > 5) { // there may be events again
          listen(of);
          return;
        }
        const { code, doc, after } = await ask(path);
        if (rid !== of) return;
        if (doc.rid) {
          result(doc);
        } else if (!later(code)) {
          stop();
          if (code === 404) keep({});
          show(code === 401 ? 'signin' : 'unknown', 'again');
          return;
        }
        await pause(Math.max(after, doc.rid ? 2 : backoff(tries)));
      }
    };

    const follow = (of, doc) => {
      if (rid === of) return;
      stop();
      rid = of;
      path = `${item}/reservations/${of}`;
      keep({ rid });
      if (doc) result(doc);
      else show('loading');
      if (rid) listen(of); // else it has ended
    };

    const listen = (of) => {
      let failures = 0;
      stream = new EventSource(`${base}${path}/events`, { withCredentials: true });
      for (const name of states) stream.addEventListener(name, (e) => rid === of && result(JSON.parse(e.data)));
      stream.onopen = () => { failures = 0; };
      // A stream ends now and then, and the browser comes back by itself. Where it does not, an answer to a poll says why.
      stream.onerror = () => {
        if (rid !== of || (stream.readyState < 2 && ++failures < 4)) return;
        stream.close();
        poll(of);
      };
    };

    // act sends what the shopper decides about the reservation.
    const act = async (what, then) => {
      const got = await ask(path + what, '{}');
      if (got.code === 200) {
        result(got.doc);
        then?.(got.doc.url);
      } else {
        text = `${got.doc.detail || say('failed')} ${say(state)}`;
        tick();
      }
    };
    const go = (url) => {
      if (url && tell('headgate-pay', { url, result: last }) && /^(https?:|\/(?!\/))/.test(url)) location.assign(url);
    };

    // resume goes on with what was under way in another tab, or before the page was loaded.
    const resume = () => {
      const was = kept();
      if (busy) return;
      if (was.rid) follow(was.rid);
      else if (was.sent) alone(order);
    };

    line.role = 'status';
    main.type = back.type = 'button';
    main.onclick = () => alone(() => (rid ? act('/pay', go) : order()));
    back.onclick = () => alone(() => act('/cancel'));
    show('loading');
    refresh();
    resume();
    setInterval(tick, 250);
    addEventListener('storage', (e) => e.key === key && kept().rid && resume());
    dom.addEventListener('visibilitychange', () => { // the page's clock may have stood still
      if (dom.hidden) return;
      rtt = Infinity;
      refresh();
    });
  };

  window.Headgate = { mount, words };
  const all = () => dom.querySelectorAll('[data-headgate-sale]').forEach(mount);
  if (dom.readyState === 'loading') addEventListener('DOMContentLoaded', all);
  else all();
})();
