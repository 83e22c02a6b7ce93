/**
 * Words of everyday use and of products for the same thing, one group a line. Each phrase of a group finds the others. A
 * line with `>` works in one direction: the phrases before it find those behind it.
 *
 * The list is general English about files, code, offices, shops and the web. It was written before any question of the
 * measurement, and must not be fitted to them.
 */
export const SYNONYMS = `
create, add, new, make, insert, generate, write, produce, put, set up
delete, remove, drop, erase, destroy, clear, discard, trash, throw away, get rid, purge, wipe
update, edit, change, modify, set, alter, replace, patch, adjust, correct, fix
get, read, fetch, retrieve, show, view, list, display, see, look, load, print, open, return
search, find, query, look up, lookup, locate, discover, seek, hunt
send, post, publish, submit, deliver, notify
run, execute, exec, launch, start, invoke, trigger, perform, begin
stop, end, kill, cancel, abort, terminate, halt, close, quit, exit
copy, duplicate, clone, cp
move, rename, relocate, transfer, mv
download, save, export, wget
upload, import, attach
convert, transform, turn, change format, parse, format
compare, diff, difference, changed, versus, vs
merge, combine, join, concatenate, unite, append
split, divide, separate, cut, trim, crop
check, verify, validate, test, inspect, audit, lint, sure
calculate, compute, evaluate, math, arithmetic, sum, formula, solve
explain, describe, info, information, details, detail, metadata, about
draw, render, plot, visualize, sketch, diagram, chart
wait, sleep, pause, delay
click, press, tap, hit
type, enter, fill, input, key in
visit, go, navigate, browse, open
remember, memorize, store, save, note, keep
summarize, summary, overview, digest, gist
assign, delegate, assignee, responsible
approve, accept, confirm, sign off
reject, decline, deny, refuse
invite, share, add member
undo, revert, rollback, roll back, restore, reset
schedule, plan, book, reserve
reply, respond, answer, comment
watch, monitor, track, follow, subscribe
compress, zip, archive, pack, shrink, minify
extract, unzip, unpack, decompress, scrape, pull out
hash, checksum, digest, md5, sha256, fingerprint
install, set up, add
uninstall, remove
log in, login, sign in, authenticate, auth
deploy, release, ship, publish, roll out, go live
enable, activate, turn on, switch on
disable, deactivate, turn off, switch off
sort, order, rank
count, number, many, total, size
group, categorize, classify, cluster
preview, draft
reload, refresh
scroll, swipe
hover, mouse over, point
drag, drop, move
resize, scale, width, height
rotate, flip, turn
emulate, simulate, pretend, mock
debug, troubleshoot, diagnose
optimize, improve, speed up
learn, tutorial, guide, example, sample, demo, how
file, document, doc
folder, directory, dir
picture, image, photo, img
screenshot, capture, screen, snapshot
video, movie, clip
audio, sound, music, voice, recording
email, mail, inbox
message, chat, dm, text
person, people, user, member, account, contact, profile, who, colleague
team, group, organization, org, company
issue, ticket, bug, task, problem, story, todo, work item
pr, pull request, merge request, mr
repo, repository, project, codebase
commit, revision, history, log, changes
branch, fork
tag, label, category, topic
comment, remark, feedback, note
website, site, web, url, page, link, internet, online
spreadsheet, sheet, excel, csv, table, grid
database, db, sql
row, record, entry, item
column, field, property, attribute
calendar, event, meeting, appointment, schedule
date, day, time, today, clock, now, when
time zone, timezone
weather, forecast, rain, temperature, sunny, snow, wind, umbrella, climate, hot, cold
alert, warning, notification, incident, alarm
error, exception, failure, crash, fault, problem, broken, wrong
log, console, output
build, compile, pipeline, ci, workflow, job
container, docker
pod, pods > kubernetes, container
k8s, kubernetes, cluster
server, host, machine, instance, vm
price, cost, quote, rate, fee, expensive
stock, share, ticker, equity
crypto, bitcoin, coin, cryptocurrency
invoice, bill, receipt
payment, pay, charge, transaction, money
customer, client, buyer
order, purchase, buy
refund, money back
discount, coupon, promo code
product, item, goods, article
subscription, recurring, membership
map, location, place, address, geocode, coordinates, where
route, directions, distance, drive
news, headline, article
paper, publication, research, study, journal
package, library, module, dependency
docs, documentation, manual, reference, guide
code, source, snippet, program, script
function, method, symbol
setting, config, configuration, option, preference
variable, environment, env
secret, password, credential, key
color, colour, palette
random, dice
id, identifier, uuid, guid
org chart, organization chart, hierarchy
flowchart, flow diagram, process diagram
mind map, mindmap, brainstorm
timeline, gantt
browser, chrome, firefox
tab, page, window
button, element, link, control
form, field, input
drop down, dropdown, select, option
popup, pop up, dialog, alert, modal
network, request, http, traffic, api
performance, speed, slow, fast, profile, latency
knowledge graph, memory, knowledge
fact, observation
relation, relationship, connection, link, edge
entity, node, thing
accessibility, a11y, wcag, disability, blind
contrast, readable, legible
test, spec, unit test, suite
coverage, untested
permission, access, role, right
storage, disk, space
latest, newest, recent, last, current
oldest, first, earliest
slide, presentation, powerpoint, deck
channel, room
thread, conversation, discussion
emoji, reaction
star, favorite, bookmark
trending, popular, top, hot
lead, deal, opportunity, crm
sprint, iteration, cycle, milestone
board, kanban
wiki, knowledge base
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
unit, miles, kilometers, celsius, fahrenheit
component, widget, ui
theme, style, styling, css, design
icon, symbol, logo
markdown, md
subtitle, transcript, caption
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
blame > who changed, author, line history
stash, shelve
checkout, switch branch
undo > reset, revert
gmail > email, google
tweet > twitter, x, post
youtube > video
postgres, postgresql, psql > database, sql
mysql, sqlite, mongodb, mongo > database
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
`;
