/**
 * Words of everyday use and of products for the same thing, one group a line. Each phrase of a group finds the others. A
 * line with `>` works in one direction: the phrases before it find those behind it.
 *
 * The list is general English about files, code, offices, shops and the web, by area. It must not be fitted to the questions
 * of the measurement.
 */
export const SYNONYMS = `
create, add, new, make, insert, generate, write, produce, set up, register, another
delete, remove, drop, erase, destroy, clear, discard, trash, throw away, get rid, purge, wipe, forget, take out, take away
update, edit, change, modify, set, alter, replace, patch, adjust, correct, fix, rewrite, refresh
get, read, fetch, retrieve, show, view, list, display, see, look, load, print, open, return, inspect
search, find, query, look up, lookup, locate, discover, seek, hunt
send, post, publish, submit, deliver, notify, tell, say
run, execute, exec, launch, start, invoke, trigger, perform, begin
stop, end, kill, cancel, abort, terminate, halt, close, quit, exit, shut down
complete, finish, close, done, tick off, tick, check off, cross off, mark done, resolve, settle
reopen, bring back, restore, undo, recover, get back
copy, duplicate, clone, cp
move, rename, relocate, transfer, mv
download, save, export, wget, pull, clone
save, write, store
upload, import, attach, push
convert, transform, turn, change format, parse, format
compare, diff, difference, changed, versus, vs, what changed
merge, combine, join, concatenate, unite, append, land
split, divide, separate, cut, trim, crop
check, verify, validate, test, inspect, audit, lint, make sure, correct, valid
calculate, compute, evaluate, math, arithmetic, sum, formula, solve, percent
explain, describe, info, information, details, detail, metadata, meaning
draw, render, plot, visualize, sketch, diagram, chart, graph
wait, sleep, pause, delay
click, press, tap, hit
type, enter, fill, input, key in
visit, go, navigate, browse, open
remember, memorize, store, save, note, keep in mind, observation
know, memory, remember, stored
about me, my family, my friend, my job, my life > memory, knowledge, entity
book, note, write down, jot down
summarize, summary, overview, digest, gist
assign, delegate, assignee, responsible
assigned, my, mine
approve, accept, confirm, sign off, say yes
reject, decline, deny, refuse, dismiss, say no
invite, share, add member, collaborate, collaborator
undo, revert, rollback, roll back, restore, reset
schedule, plan, book, reserve
remind, reminder, task, todo
reply, respond, answer, comment
watch, monitor, track, follow, subscribe, keep an eye, let me know when, tell me when
compress, zip, archive, pack, shrink, minify
extract, unzip, unpack, decompress, scrape, pull out
hash, checksum, digest, md5, sha1, sha256, fingerprint
install, set up, add
uninstall, remove
log in, login, sign in, authenticate, auth
deploy, release, ship, publish, roll out, go live, put live, live, apply
enable, activate, turn on, switch on
disable, deactivate, turn off, switch off
switch, change, checkout, select, context
sort, order, rank
count, number, many, total, size, how many
group, categorize, classify, aggregate
preview, draft
pending, waiting, open, unfinished
reload, refresh
scroll, swipe
hover, mouse over, point
drag, drop, move
resize, scale, width, height, small, large, viewport
rotate, flip, turn
emulate, simulate, pretend, mock
debug, troubleshoot, diagnose, root cause, why, find out why, analyze
optimize, improve, speed up
learn, tutorial, guide, example, sample, demo, how, template
catch up, up to date, behind, update, sync, synchronize, latest changes, pull, fetch
put aside, set aside, shelve, stash
protect, lock, forbid, nobody, prevent
link, connect, relate, belong together, associate
give access, permission, access, role, right, member
how long, duration, time, distance
how far, distance
how high, elevation, altitude
how big, size
how old, age, date
file, document, doc
folder, directory, dir
disk, space, storage, size, big
picture, image, photo, img, screenshot
screenshot, capture, screen, snapshot
video, movie, clip, recording, screencast
audio, sound, music, voice
email, mail, inbox
message, chat, dm, text
person, people, user, member, account, contact, profile, who, colleague, guy
team, group, organization, org, company, department
issue, ticket, bug, task, problem, story, todo, work item
todo, task, to do
pr, pull request, merge request, mr
review, reviewer, approval, feedback
repo, repos, repository, project, codebase
commit, revision, history, log, changes
history, log, past, previous, activity
release notes, changelog
branch, fork
tag, label, category, topic
comment, remark, feedback, note
discussed, said, talked, messages, history
website, site, web, url, page, webpage, internet, online
google, web search, search
news, headline, article, happening
spreadsheet, sheet, excel, csv, table, grid
database, db, sql
collection, table
row, record, entry, item, document
column, field, property, attribute
schema, structure, fields, mapping
calendar, event, meeting, appointment, schedule
date, day, time, today, clock, now, when, week, month
time zone, timezone
ago, since, relative
weather, forecast, rain, temperature, sunny, snow, wind, umbrella, jacket, climate, hot, cold
alert, warning, notification, incident, alarm
error, exception, failure, crash, fault, problem, broken, wrong
log, logs, console, output
build, compile, pipeline, ci, workflow, job, status check, green
container, docker
pod, pods > kubernetes, container
k8s, kubernetes, cluster
kubernetes, kubectl
replica, replicas, scale, instance
manifest, yaml
maintenance, drain, cordon
server, host, machine, instance, vm
terminal, shell, command line, console, process, command
cpu, memory usage, processes, running
price, cost, quote, rate, fee, expensive
stock, share, ticker, equity
crypto, bitcoin, coin, cryptocurrency
invoice, bill, receipt
payment, pay, charge, transaction, money
credit, credits, balance, quota, left, remaining
customer, client, buyer
order, purchase, buy
refund, money back
discount, coupon, promo code
product, item, goods, article
subscription, recurring, membership
map, location, place, address, geocode, coordinates, where
near me, nearby, place, local
restaurant, cafe, shop, store > place
opening hours, place details
route, directions, distance, drive, trip
paper, publication, research, study, journal
cite, citation, reference, related
report, research
package, library, module, dependency
docs, documentation, manual, reference, guide
code, source, snippet, program, script
function, method, symbol, api
style, lint, formatting, convention
setting, config, configuration, option, preference
variable, environment, env
secret, password, credential, key
token, jwt, access token
color, colour, palette, theme
random, dice, lottery
id, identifier, uuid, guid, key
hexadecimal, hex, binary, octal, base
org chart, organization chart, hierarchy, reports to
flowchart, flow diagram, process diagram, steps
mind map, mindmap, brainstorm
timeline, gantt
pie, slices, share, proportion
bars, bar chart, column chart
curve, line chart, trend
bins, histogram, distribution
circles, overlap, venn
funnel, drop out, conversion
spider web, radar
browser, chrome, firefox
tab, page, window
addon, add on, plugin, extension
button, element, link, control
form, field, input
drop down, dropdown, select, option, choose
popup, pop up, dialog, alert, modal
network, request, http, traffic, api call
javascript, js, script
performance, speed, slow, fast, profile, latency
leak, memory, heap, ram
dark mode, color scheme, media
seo, lighthouse, best practices
knowledge graph, memory, knowledge
fact, observation, note
relation, relationship, connection, link, edge
entity, node, thing
accessibility, a11y, wcag, disability, blind, screen reader
contrast, readable, legible
highlight, annotate, underline, mark
mark, set, flag
test, spec, unit test, suite
coverage, untested, not tested
latest, newest, recent, last, current
oldest, first, earliest
slide, presentation, powerpoint, deck
channel, room
thread, conversation, discussion
emoji, reaction, thumbs up, like, rocket, heart
star, favorite, bookmark
trending, popular, top, hot
lead, deal, opportunity, crm
sprint, iteration, cycle, milestone
board, kanban
wiki, knowledge base
paragraph, text, block, section
parent, under, nest
dashboard, panel, report
metric, analytics, statistics, stats, usage, measurement
backup, dump
queue, topic
bucket, blob, object storage
serverless, lambda
dns, domain, nameserver
certificate, cert, ssl, tls
ip address, ip
subnet, cidr, netmask
localhost, local port, forward
language, translation, translate, localization
marine, ocean, sea, wave, tide, surf
air quality, pollution, aqi, smog
sunrise, sunset, daylight
flight, plane, airport, airline
hotel, accommodation, stay
train, bus, transit
recipe, food, meal, dish, cook
film, movie, cinema
song, track, playlist
meaning, definition, dictionary
regex, regular expression, pattern
barcode, qr code
cron, crontab, recurring schedule
interest, loan, mortgage
currency, exchange rate, euro, dollar
unit, miles, km, kilometers, kilogram, pounds, celsius, fahrenheit
version, semver, release
component, widget, ui
theme, css, design
icon, symbol, logo
markdown, md
subtitle, transcript, caption
spoken, says, said > transcript
credit card, luhn, card number
what, which, any, all, are there, is there, who > get, list, read, search, find
my computer, this machine, my disk, my laptop, my machine, locally > file, local, directory
several, many, these, at once, in one go, multiple > multiple, bulk
report a bug, report a problem > create issue
until, days until, days since, between > date, difference
deep report, write a report, look into > research
ls > list directory, list files
cat > read file
mkdir > create directory
touch > create file, write file
rm > delete, remove
grep > search, find
pwd > current directory
cd > change directory, working directory
ps > processes, running
curl > fetch, http request
chmod > permissions
df > disk space
npm, pip, make > command, process
blame > who changed, author, line history
who changed, who wrote, author > blame
stash, shelve
checkout, switch branch
uncommitted, working tree, unstaged
lost commit > reflog
cherry pick, one commit
gmail > email, google
tweet > twitter, x, post
youtube > video
postgres, postgresql, psql > database, sql
mysql, sqlite, mongodb, mongo > database
mongo, mongodb
elastic, elasticsearch
jira > issue, atlassian
confluence > wiki, page, atlassian
slack, discord, teams > message, channel
notion > page, database
figma > design
stripe > payment
sentry > error
trello > board, card
github, gitlab > repository
npm > package
pip, pypi > package, python
aws > amazon, cloud
gcp > google cloud
s3 > bucket, aws
ec2 > instance, aws
excel > spreadsheet
word, docx > document
react, vue, angular, svelte > component, library, docs
swift, swiftui, ios, macos > apple
`;

/** Patterns of values in a request, such as URLs and dates, with the words that replace them in the search. */
export const SHAPES: readonly (readonly [thing: RegExp, words: string])[] = [
  [/https?:\/\/\S+|\b[\w-]+\.(?:com|org|net|io|dev|app|de|eu|uk)\b\S*/gi, 'url website'],
  [/\b[\w.+-]+@[\w-]+\.\w+/g, 'email'],
  [/\b[\w-]+\.(?:png|jpe?g|gif|webp|svg|bmp)\b/gi, 'image file'],
  [/\b[\w-]+\.pdf\b/gi, 'pdf file'],
  [/\b[\w-]+\.(?:csv|xlsx?|ods)\b/gi, 'spreadsheet file'],
  [/\b[\w-]+\.(?:txt|md|docx?|rtf|log|jsx?|tsx?|py|go|rs|java|rb|php|c|h|cpp|css|html?|sh|toml|ini)\b/gi, 'text file'],
  [/(?:[\w.-]*\/)?\.?[\w-]+\.(json|ya?ml|xml)\b/gi, 'file $1'],
  [/(?<=^|\s)[\w.-]+\/[\w./-]+/g, 'path repository'],
  [/\bREADME\b/g, 'file contents'],
  [/(?:[\d*/,-]+ +){4}[\d*/,-]+/g, 'cron'],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?:\/\d+)?/g, 'ip address'],
  [/[\^~>=<]*\bv?\d+\.\d+\.\d+\b|[\^~]\d+(?:\.\d+)*|\bv\d+(?:\.\d+)+\b/g, 'version'],
  [/#(?:[\da-f]{6}|[\da-f]{3})\b/gi, 'color'],
  [/#\d+\b|\b[A-Z]{2,}-\d+\b/g, 'issue identifier'],
  [/#[a-z][\w-]*/gi, 'channel'],
  [/-?\d+\.\d+ *, *-?\d+\.\d+/g, 'coordinates'],
  [/\d+(?:[.,]\d+)? *%(?: of)?|\d+(?:\.\d+)? *[+*/^] *\d+(?:\.\d+)?/g, 'math'],
  [/\d+(?:\.\d+)? *(?:km|mi|miles?|kg|lbs?|pounds|cm|inch(?:es)?|feet|ft|°?[CF]|liters?|gallons?)\b/g, 'unit convert'],
  [/\b\d{1,2}(?::\d{2})? ?[ap]m\b|\b\d{1,2}:\d{2}\b/gi, 'time'],
];
